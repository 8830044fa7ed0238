//! Writes a model's answers to a file, so that they can be replayed.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{Model, ModelAnswer, ModelError, Piece, Question};
use crate::cancel::Cancel;

/// A model whose answers are also written to a replay file.
pub struct Record {
    model: Box<dyn Model>,
    file: File,
    path: PathBuf,
}

impl Record {
    /// Starts a new replay file; one that exists is not overwritten.
    pub fn create(model: Box<dyn Model>, path: &Path) -> Result<Record, ModelError> {
        let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let file = made.map_err(|source| failed("create", path, source))?;
        Ok(Record { model, file, path: path.to_owned() })
    }
}

impl std::fmt::Debug for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Record").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Model for Record {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn server(&self) -> Option<&str> {
        self.model.server()
    }

    fn answer(&mut self, question: &Question<'_>, hear: &mut dyn FnMut(Piece<'_>)) -> Result<ModelAnswer, ModelError> {
        let answer = self.model.answer(question, hear)?;
        let line = format!("{}\n", answer.to_json());
        if let Err(source) = self.file.write_all(line.as_bytes()) {
            let error = failed("write", &self.path, source);
            hear(Piece::Status(&format!("the recording is incomplete: {error}")));
        }
        Ok(answer)
    }

    fn window(&mut self, cancel: &Cancel) -> Option<u64> {
        self.model.window(cancel)
    }
}

fn failed(doing: &'static str, path: &Path, source: std::io::Error) -> ModelError {
    ModelError::File(ollm_store::FileError::Io { doing, path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::replay::Replay;

    #[test]
    fn what_is_recorded_can_be_replayed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.jsonl");
        let text = "{\"content\":\"a\",\"tool_calls\":[{\"id\":\"7\",\"name\":\"todo\",\"arguments\":{\"x\":1}}],\"usage\":{\"total_tokens\":3}}\n{\"content\":\"b\"}\n";
        let replay = Replay::parse(Path::new("x"), text).unwrap();
        let mut record = Record::create(Box::new(replay), &path).unwrap();
        let question = Question { messages: &[], tools: &[], most: 1000, cancel: &Cancel::default() };
        record.answer(&question, &mut |_| {}).unwrap();
        record.answer(&question, &mut |_| {}).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        let other = Replay::parse(Path::new("x"), text).unwrap();
        assert!(Record::create(Box::new(other), &path).is_err(), "an old recording must not be overwritten");
    }
}
