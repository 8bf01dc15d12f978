//! A number with its spread, under a name that stays.

use std::{fs, io};

use serde_json::json;

/// One figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name, the same in every version.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// What was measured.
    pub samples: Vec<f64>,
}

impl Figure {
    /// A figure with its samples in order.
    pub fn new(name: &'static str, unit: &'static str, mut samples: Vec<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        Self { name, unit, samples }
    }

    /// The sample that so many of a thousand do not exceed.
    pub fn at(&self, thousandth: usize) -> f64 {
        let last = self.samples.len().saturating_sub(1);
        self.samples.get((self.samples.len() * thousandth / 1_000).min(last)).copied().unwrap_or(f64::NAN)
    }
}

/// Prints a table.
pub fn print(figures: &[Figure]) {
    println!("{:<26}{:>12}{:>12}{:>12}  {:<10}{:>8}", "figure", "median", "min", "max", "unit", "samples");
    for figure in figures {
        let (median, min, max) = (figure.at(500), figure.at(0), figure.at(1_000));
        println!("{:<26}{median:>12.2}{min:>12.2}{max:>12.2}  {:<10}{:>8}", figure.name, figure.unit, figure.samples.len());
    }
}

/// Writes `target/bench.json`.
///
/// # Errors
/// When the file can't be written.
pub fn write(figures: &[Figure]) -> io::Result<()> {
    let list: Vec<_> = figures
        .iter()
        .map(|figure| {
            json!({
                "name": figure.name, "unit": figure.unit, "median": figure.at(500), "min": figure.at(0), "max": figure.at(1_000),
                "samples": figure.samples.len(),
            })
        })
        .collect();
    fs::create_dir_all("target")?;
    fs::write("target/bench.json", serde_json::to_vec_pretty(&list)?)
}
