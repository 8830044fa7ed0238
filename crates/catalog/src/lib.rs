//! Reads declarations and installed parts: configuration, hook files, extensions, MCP servers.
//!
//! [`load`] reads the configuration and every hook file of the user and of the project. It returns a [`Catalog`] and
//! the [`Problem`]s it found. A broken file, entry or key never hides another. All valid parts are loaded, and all
//! others are reported with their place in the file.
//!
//! A file is read once, with the position of every value. [`load_for`] stores the declarations of files for the next
//! event.
//!
//! This crate starts no process, opens no socket, prints nothing, and reads neither environment nor home by itself:
//! they come in as values.

#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod budget;
mod config;
pub mod connection;
pub mod edit;
mod entry;
mod extension;
mod file;
mod file_stamps;
mod format;
mod json_edit;
mod load;
mod mcp;
mod node;
mod path;
mod place;
mod problem;
mod text_edit;
mod value;
mod yaml_edit;

pub use config::{
    BOX_SOCKETS, Config, ConfigEdit, ConfigKind, DownloadSettings, Edit, EditError, ExtensionSettings, GUARDS,
    HookSettings, IgnoredValue, Item, KEYS, Key, LogSettings, McpSettings, Migration, Origin, Overrides, Project,
    Safety, SetBy, Setting, TelemetrySettings, TraceSettings, change as change_config,
    check_target as check_config_target, configuration, find_key, forget_extension as forget_extension_settings,
    key_table, migrate as migrate_config, mistyped_variables, schema as config_schema,
};
pub use entry::{hook_file_schema, hook_schema};
pub use extension::{
    Changes, CopyOf, Dependency, Extension, ExtensionState, Extensions, INSTALL_RECORD, Index, InstallChange, Manifest,
    ManifestKey, NewFolder, Permissions, ReadExtensions, SettingKind, SettingSpec, SettingValue, Skill, Surroundings,
    TranslatedPackage, check_extension_name, extensions, foreign_manifest, is_package, is_package_manifest,
    manifest_key_names, manifest_keys, manifest_schema, named_extensions, reload_extensions, settings_schema,
    settle_extensions, validate_extension,
};
pub use file::{Syntax, TrailingCommas, json_value, read_json};
pub use file_stamps::{FileStamps, StampedPaths};
pub use format::Form;
pub use load::{
    Catalog, Moment, Snapshots, UndeclaredScript, drop_snapshots, files_in_place, is_snapshot_current, load, load_for,
    load_named, undeclared,
};
pub use mcp::{
    Address, ApprovedPart as ServerApproved, EditError as ServerEditError, OTHER_TRANSPORTS, Pairs, SERVER_KEYS,
    ServerKey, ServerKeyKind, ServerSnippet, ServerSpec, SnippetError, TRANSPORTS, TextForm as ServerTextForm,
    Transport, UnsupportedKey as ServerUnhonoured, add_server, check_server, expand, expand_with, is_toml_snippet,
    load_servers, load_servers_from, remove_server, servers_from_json, servers_from_toml, servers_from_yaml,
    settings_file, taken_server, unfenced, yaml_value,
};
pub use place::{NestedProjects, Places, PolicyFile, find_projects, nested_projects};
pub use problem::{Problem, Severity, Snippet};
