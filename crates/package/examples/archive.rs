//! Packs files, and reads them again.

use ollm_package::{Bounds, Package, pack, read_archive};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let package: Package = [("manifest.json", b"{}".to_vec(), false)].into_iter().collect();
    let archive = pack(&package)?;
    assert_eq!(read_archive(&archive, Bounds::default())?, package);
    Ok(())
}
