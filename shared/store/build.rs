//! The migrations are compiled in: a new file among them must reach the next build.

fn main() {
    println!("cargo::rerun-if-changed=../../migrations");
}
