//! `ollm model`: lists, fetches and shows the models of a local Ollama.

use ollm_agent::{ModelDetails, ModelEntry, PullProgress};
use ollm_app::model::ModelConfig;
use ollm_app::model::library::{Library, SUGGESTED};
use ollm_app::{App, AppContext};
use ollm_store::one_line;
use serde_json::{Value, json};

use crate::arguments::agent::ModelCommand;
use crate::error::{Failure, OK};
use crate::interrupt::Stop;
use crate::output::Output;
use crate::table::{columns, table};

/// A request to the server, and the signal that ends the wait for it.
struct Asking<'a> {
    library: Library,
    context: &'a AppContext,
    stop: Stop,
}

pub(super) fn run(command: &ModelCommand, context: &AppContext, output: &mut Output) -> Result<u8, Failure> {
    let app = App::load(context)?;
    app.tell_problems(output);
    let library = Library::of(&ModelConfig::of(&app.config), context)?;
    let asking = Asking { library, context, stop: Stop::listen() };
    let done = match command {
        ModelCommand::List { json } => asking.list(*json, output),
        ModelCommand::Show { name, json } => asking.show(name, *json, output),
        ModelCommand::Pull { name } => asking.pull(name, output),
    };
    // After an interruption, the failure is only its consequence.
    match (done, asking.stop.failure()) {
        (Err(_), Some(interrupted)) => Err(interrupted),
        (done, _) => done,
    }
}

impl Asking<'_> {
    fn list(&self, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
        output.busy("asking Ollama");
        let models = self.library.list(self.context, self.stop.cancel())?;
        if as_json {
            return output.json(&models.iter().map(entry).collect());
        }
        if models.is_empty() {
            let url = self.library.url();
            output.tell(&format!("Ollama at {url} has no model yet; `ollm model pull {SUGGESTED}` fetches one"));
            return Ok(OK);
        }
        let head = ["NAME", "SIZE", "PARAMETERS", "STORED AS"];
        output.text(&table(head, models.iter().map(row)))
    }

    fn show(&self, name: &str, as_json: bool, output: &mut Output) -> Result<u8, Failure> {
        output.busy("asking Ollama");
        let ModelDetails { family, parameters, quantization, capabilities, context_length, num_ctx, .. } =
            self.library.show(name, self.context, self.stop.cancel())?;
        if as_json {
            return output.json(&json!({
                "name": name, "family": family, "parameters": parameters, "quantization": quantization,
                "capabilities": capabilities, "contextLength": context_length, "loadedWith": num_ctx,
            }));
        }
        let tokens = |count: Option<u64>| count.map(|count| format!("{count} tokens"));
        let can = (!capabilities.is_empty()).then(|| capabilities.join(", "));
        let rows: Vec<[String; 2]> = [
            ("name", Some(name.to_owned())),
            ("family", family),
            ("parameters", parameters),
            ("stored as", quantization),
            ("can do", can),
            ("looks at most at", tokens(context_length)),
            ("is loaded with", tokens(num_ctx)),
        ]
        .into_iter()
        .filter_map(|(what, value)| Some([what.to_owned(), value?]))
        .collect();
        output.text(&columns(&rows))
    }

    fn pull(&self, name: &str, output: &mut Output) -> Result<u8, Failure> {
        let mut bar = output.progress();
        let mut last = String::new();
        let pulled = self.library.pull(name, self.context, self.stop.cancel(), &mut |progress: &PullProgress| {
            let PullProgress { status, total, completed, .. } = progress;
            bar.step(&one_line(status), completed.unwrap_or(0), total.unwrap_or(0));
            if *status != last {
                last.clone_from(status);
                output.detail(|| one_line(status));
            }
        });
        bar.clear();
        pulled?;
        output.tell(&format!("`{name}` is here; `ollm run --model {name} PROMPT` uses it"));
        Ok(OK)
    }
}

fn row(model: &ModelEntry) -> [String; 4] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    [model.name.clone(), size(model.size), text(&model.parameters), text(&model.quantization)]
}

fn entry(model: &ModelEntry) -> Value {
    json!({"name": model.name, "size": model.size, "parameters": model.parameters, "quantization": model.quantization})
}

/// A size for people.
#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_units_that_people_know() {
        for (bytes, text) in [(0, "0.0 KB"), (1500, "1.5 KB"), (98_000_000, "98.0 MB"), (4_700_000_000, "4.7 GB")] {
            assert_eq!(size(bytes), text);
        }
    }
}
