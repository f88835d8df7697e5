//! I1 to I3: one owner per number; bits and counters are what the rows say.

use std::collections::{BTreeMap, HashMap};

use super::{Chunk, Facts, Product};

const NUMBERS_PER_CHUNK: i32 = 8_192;

/// Position of a kind among the counters.
const KINDS: [&str; 4] = ["available", "reserved", "paid", "blocked"];

pub(super) fn check(facts: &Facts, findings: &mut Vec<String>) {
    let mut rows: HashMap<i32, BTreeMap<i32, Option<&str>>> = HashMap::new();
    for taken in &facts.taken {
        let (key, number) = (taken.product_key, taken.number);
        match facts.products.get(&key) {
            Some(product) if number < product.first || number - product.first >= product.count => {
                findings.push(format!("product {key}: number {number} is taken but outside the range"));
            }
            Some(_) => {}
            None => findings.push(format!("number {number} is taken of the unknown product {key}")),
        }
        if rows.entry(key).or_default().insert(number, taken.kind(facts)).is_some() {
            findings.push(format!("I1: number {number} of product {key} is taken twice"));
        }
    }
    let mut seen: HashMap<i32, Vec<i32>> = HashMap::new();
    for chunk in &facts.chunks {
        seen.entry(chunk.product_key).or_default().push(chunk.chunk);
        match facts.products.get(&chunk.product_key) {
            Some(product) => check_chunk(product, chunk, rows.get(&chunk.product_key), findings),
            None => findings.push(format!("chunk {} of the unknown product {}", chunk.chunk, chunk.product_key)),
        }
    }
    for (key, product) in &facts.products {
        let mut chunks = seen.remove(key).unwrap_or_default();
        chunks.sort_unstable();
        let wanted: Vec<i32> = (0..=(product.count - 1) / NUMBERS_PER_CHUNK).collect();
        if chunks != wanted {
            findings.push(format!("product {key}: has the chunks {chunks:?}, not {wanted:?}"));
        }
    }
}

fn check_chunk(
    product: &Product,
    chunk: &Chunk,
    rows: Option<&BTreeMap<i32, Option<&str>>>,
    findings: &mut Vec<String>,
) {
    let name = format!("chunk {} of product {}", chunk.chunk, chunk.product_key);
    let start = chunk.chunk * NUMBERS_PER_CHUNK;
    let size = (product.count - start).min(NUMBERS_PER_CHUNK);
    if chunk.size != size || chunk.bits.len() != 1_024 {
        findings.push(format!("I2: {name}: size {} for {size}, {} bytes", chunk.size, chunk.bits.len()));
        return;
    }
    let mut counted = [0; 4];
    for offset in 0..NUMBERS_PER_CHUNK {
        let position = usize::try_from(offset).expect("not negative");
        let set = (chunk.bits[position >> 3] >> (position & 7)) & 1 == 1;
        if offset >= size {
            if !set {
                findings.push(format!("I2: {name}: padding bit {offset} is clear"));
            }
            continue;
        }
        let number = product.first + start + offset;
        let row = rows.and_then(|rows| rows.get(&number)).copied();
        if set != row.is_some() {
            findings.push(format!("I2: {name}: bit of {number} is {set}, its row {row:?}"));
        }
        // A row whose owner may not own it is a finding elsewhere.
        let kind = row.map_or("available", |kind| kind.unwrap_or("reserved"));
        let counter = KINDS.iter().position(|word| *word == kind);
        counted[counter.expect("a known kind")] += 1;
    }
    if counted != chunk.counters {
        findings.push(format!("I3: {name}: counts {:?} ({KINDS:?}), the rows say {counted:?}", chunk.counters));
    }
}
