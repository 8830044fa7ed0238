//! Writes and reads the box of a program that another process runs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ollm_process::BoxWatch;
use ollm_protocol::PermissionsSpec;
use ollm_trust::ProgramBox;
use serde_json::{Value, json};

use super::{bytes, unbytes};

pub(super) fn write(program_box: &ProgramBox) -> Value {
    let path = |path: &Path| bytes(path.as_os_str());
    let optional = |path: &Option<PathBuf>| path.as_deref().map(Path::as_os_str).map(bytes);
    json!({
        "permissions": program_box.permissions,
        "declared": program_box.declared,
        "program": path(&program_box.program),
        "project": path(&program_box.project),
        "script": optional(&program_box.script),
        "copy": optional(&program_box.copy),
        "home": optional(&program_box.home),
        "searchPath": bytes(OsStr::new(&program_box.search_path)),
        "temporary": path(&program_box.temporary),
    })
}

pub(super) fn read(value: &Value) -> Option<ProgramBox> {
    let path = |name: &str| value.get(name).and_then(unbytes).map(PathBuf::from);
    let permissions: PermissionsSpec = serde_json::from_value(value.get("permissions")?.clone()).ok()?;
    Some(ProgramBox {
        permissions,
        declared: value.get("declared")?.as_bool()?,
        program: path("program")?,
        project: path("project")?,
        script: path("script"),
        copy: path("copy"),
        home: path("home"),
        search_path: unbytes(value.get("searchPath")?)?,
        temporary: path("temporary")?,
        watch: BoxWatch::Refused,
    })
}
