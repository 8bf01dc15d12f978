//! The objects of `tenure.dev/v1alpha1`. These types are the only source of the CRDs, their documentation and the chart's copy.
//!
//! Every instant is a [`jiff::Timestamp`] (RFC 3339 with an offset; one without is refused), every duration whole seconds in a
//! field named `...Seconds`, every list and string bounded.

// Each printer column of a kind has a name, a type and a path, as the others have.
#![allow(clippy::duplicated_attributes)]

pub mod annotations;
pub mod bounds;
mod claim;
mod claim_status;
mod class;
pub mod crds;
mod owner_release;
mod reason;
mod receipt;
mod report;
mod resource;
mod resource_status;
mod revocation;
pub mod rules;
mod schema;

pub use claim::*;
pub use claim_status::*;
pub use class::*;
pub use owner_release::*;
pub use reason::*;
pub use receipt::*;
pub use report::*;
pub use resource::*;
pub use resource_status::*;
pub use revocation::*;

/// An instant on the wall clock, as the API carries it.
pub type Instant = jiff::Timestamp;

/// The API group of all kinds.
pub const GROUP: &str = "tenure.dev";
/// The version of all kinds.
pub const VERSION: &str = "v1alpha1";
