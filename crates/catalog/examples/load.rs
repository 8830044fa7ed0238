//! Loads the hooks of a user: a valid one, and one with a mistake.

#![expect(clippy::print_stdout, reason = "the point of the program")]

use ollm_catalog::{Overrides, Places, load};

const HOOKS: &str = r#"{"hooks": {
    "before_tool": [{"name": "guard", "command": "sh", "args": ["guard.sh"]}],
    "aftr_tool": [{"name": "note", "command": "sh", "args": ["note.sh"]}]
}}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    std::fs::create_dir(home.path().join("hooks"))?;
    std::fs::write(home.path().join("hooks/mine.json"), HOOKS)?;
    let places = Places { home: home.path().into(), ..Places::default() };
    let (catalog, problems) = load(&places, &|_| None, &Overrides::default());
    for problem in &problems {
        println!("{problem}");
    }
    assert_eq!((catalog.hooks.len(), problems.len()), (1, 1));
    Ok(())
}
