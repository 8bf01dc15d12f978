//! How long and how large anything in an object may be. The schemas refuse what is beyond.

/// Characters in the name of an object.
pub const NAME: usize = 253;
/// Characters in the name of a namespace, a request or a kind.
pub const LABEL: usize = 63;
/// Characters in a key that claims may name.
pub const KEY: usize = 512;
/// Characters in a uid.
pub const UID: usize = 64;
/// Characters in an `apiVersion`: a group, a slash and a version.
pub const API_VERSION: usize = 317;
/// Characters in an account's user name.
pub const USER: usize = 1_024;
/// Characters in a name for people.
pub const TITLE: usize = 128;
/// Characters in a reason that a person gives.
pub const TEXT: usize = 500;
/// Characters in a sentence that the controller writes.
pub const MESSAGE: usize = 4_096;
/// Characters in a list of names joined for a column.
pub const COLUMN: usize = 8_192;
/// The largest count, fence, revision or ticket: JSON readers that know only floating point still carry it whole.
pub const COUNT: i64 = 9_007_199_254_740_991;
/// Units that a Resource may have (C1).
pub const QUANTITY: i64 = 1_000_000;
/// Seconds in a day.
pub const DAY: i64 = 86_400;
/// Seconds in a week.
pub const WEEK: i64 = 604_800;
/// Seconds in a year.
pub const YEAR: i64 = 31_536_000;
/// Memory, 16 TiB in MiB.
pub const MIB: i64 = 16_777_216;
/// Requests of one claim (M1).
pub const REQUESTS: usize = 8;
/// Resources granted to one claim (M2).
pub const GRANTS: usize = 16;
/// Protected windows of one Resource (W1).
pub const WINDOWS: usize = 64;
/// Occupancies that a ledger may list: those C6 allows, with room for reservations that are being taken back.
pub const OCCUPANTS: usize = 512;
/// Resources directly inside one (C10).
pub const CHILDREN: usize = 128;
/// Ordinary waiters that a ledger may list: the 64 that may come (Q5), with room for those that come by another pick (M4) or
/// by a claim on the Resource above (C10).
pub const ORDINARY: usize = 512;
/// Drains that a ledger may list: the 16 that may come (Q5), with room as above.
pub const DRAINS: usize = 128;
/// Processes on one device that a report tells of.
pub const PROCESSES: usize = 64;
/// Claims whose Pods one report tells of: 16 on each of its Resources.
pub const ALIVE: usize = 2_048;
