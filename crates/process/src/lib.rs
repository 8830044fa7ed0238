//! The children of ollm: spawn, group, deadline, caps, kill ladder.
