//! What holds from version to version.

mod approved_before;
