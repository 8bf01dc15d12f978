//! Numbers that a seed decides.

use std::{
    env,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The variable that repeats the numbers of a run that failed.
const SEED: &str = "TENURE_CHAOS_SEED";

pub struct Dice(u64);

/// The seed given, or one that no earlier run had. It is printed.
pub fn seed() -> u64 {
    let given = env::var(SEED).ok().map(|seed| seed.parse().unwrap_or_else(|_| panic!("{SEED} is {seed:?}: give a whole number")));
    let seed = given.unwrap_or_else(|| u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos()));
    eprintln!("{SEED}={seed}");
    seed
}

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    pub fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    pub fn between(&mut self, least: usize, most: usize) -> usize {
        least + self.roll(most - least + 1)
    }

    pub fn milliseconds(&mut self, least: usize, most: usize) -> Duration {
        Duration::from_millis(self.between(least, most) as u64)
    }
}
