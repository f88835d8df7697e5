//! Keys for the functions, made here and never printed: only their public halves are.

use std::fs::{File, OpenOptions, read_to_string, rename};
use std::io::Write;
use std::path::Path;

use edge::auth::signing::{public_half, rotate};
use serde_json::json;

use crate::cli::{KeysAct, SigningArgs};
use crate::failure::Failure;
use crate::output::Output;

/// `tirada keys`
pub(crate) fn make(act: KeysAct) -> Result<Output, Failure> {
    match act {
        KeysAct::Signing(args) => signing(&args),
    }
}

fn signing(args: &SigningArgs) -> Result<Output, Failure> {
    let SigningArgs { file, kid } = args;
    let unusable = |error: &dyn std::fmt::Display| Failure::refused(format!("{}: {error}", file.display()));
    let older = match read_to_string(file) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(unusable(&error)),
    };
    let keys = rotate(kid, older.as_deref()).map_err(|error| unusable(&error))?;
    let public = public_half(&keys).map_err(|error| unusable(&error))?;
    replace(file, &keys).map_err(|error| unusable(&error))?;
    let text = format!("{public}\n\ndeploy this as TokenKeys first, and {} as the secret afterwards", file.display());
    Ok(Output::new(text, json!({"kid": kid, "token_keys": public})))
}

/// Writes a file that only its owner may read, all of it or nothing.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file: File = options.open(&beside)?;
    file.write_all(format!("{text}\n").as_bytes())?;
    file.sync_all()?;
    rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_file_gets_a_new_key_in_front_and_shows_its_public_halves() {
        let folder = std::env::temp_dir().join(format!("tirada-keys-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("signing-keys.json");
        let run = |kid: &str| signing(&SigningArgs { file: file.clone(), kid: kid.to_owned() });
        run("1").unwrap();
        let printed = run("2").unwrap();
        let kept: Value = serde_json::from_str(&read_to_string(&file).unwrap()).unwrap();
        let kids: Vec<&Value> = kept["keys"].as_array().unwrap().iter().map(|key| &key["kid"]).collect();
        assert_eq!(kids, ["2", "1"]);
        assert!(
            kept["keys"]
                .as_array()
                .unwrap()
                .iter()
                .all(|key| !printed.json().to_string().contains(key["d"].as_str().unwrap()))
        );
        assert_eq!(printed.json()["token_keys"]["keys"].as_array().unwrap().len(), 2);
        assert!(run("2").is_err(), "a name is used once");
        assert_eq!(serde_json::from_str::<Value>(&read_to_string(&file).unwrap()).unwrap(), kept);
        #[cfg(unix)]
        assert_eq!(
            std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions()) & 0o777,
            0o600
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
