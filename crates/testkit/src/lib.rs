//! The workshop: generators and fakes for ollm's own tests.
