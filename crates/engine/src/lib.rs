//! The deeds of ollm: from one event to one verdict.
