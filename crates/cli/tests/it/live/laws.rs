//! The numbered properties of extensions that need live servers.
