//! What the API server checks of one object, old and new: CEL rules that stand in the CRDs.
//!
//! A rule about the ledger stands on `.status`, where one that an older object already breaks refuses only a changed status. What
//! links spec and status, or needs the object's name, stands on the root, and only compares with the object as it was.

/// What a refusal is called in the API server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The value can't be what it is.
    Invalid,
    /// The change is not allowed.
    Forbidden,
    /// A field is missing.
    Required,
}

impl Refusal {
    /// The word in a CRD.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Forbidden => "FieldValueForbidden",
            Self::Required => "FieldValueRequired",
        }
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where in the schema, as in `spec.requests[]`; empty at the root.
    pub at: &'static str,
    /// The CEL expression, true of what is allowed.
    pub rule: String,
    /// What a person is told.
    pub message: &'static str,
    /// What the refusal is called.
    pub refusal: Refusal,
    /// The field it is about, from where the rule stands, as in `.capacity`; that place itself when empty.
    pub field: String,
}

fn rule(at: &'static str, field: &str, refusal: Refusal, rule: &str, message: &'static str) -> Rule {
    Rule { at, rule: rule.to_owned(), message, refusal, field: field.to_owned() }
}

/// The rules of a kind. `fields` are those of its spec.
pub fn of(kind: &str, fields: &[String]) -> Vec<Rule> {
    match kind {
        "Resource" => [capacity(), resource(), in_use(), ledger()].concat(),
        "ResourceClass" => [capacity(), class()].concat(),
        "Claim" => [requests(), claim(), fixed(fields)].concat(),
        "Receipt" => immutable("a Receipt can't be changed once written: write another"),
        "Revocation" => [revocation(), immutable("a Revocation can't be changed once written: write another")].concat(),
        "OwnerRelease" => [owner_release(), immutable("an OwnerRelease can't be changed once written: write another")].concat(),
        _ => Vec::new(),
    }
}

/// C1: what a capacity may say.
fn capacity() -> Vec<Rule> {
    vec![
        rule(
            "spec.capacity",
            ".mode",
            Refusal::Invalid,
            "self.mode == 'Shared' || (!has(self.quantity) && (!has(self.unlimited) || !self.unlimited))",
            "an Exclusive Resource is one unit: leave out quantity and unlimited, or say mode: Shared",
        ),
        rule(
            "spec.capacity",
            ".quantity",
            Refusal::Invalid,
            "self.mode == 'Exclusive' || has(self.quantity) != (has(self.unlimited) && self.unlimited)",
            "a Shared Resource has either a quantity or unlimited: true",
        ),
    ]
}

/// What a Resource may say of itself.
fn resource() -> Vec<Rule> {
    vec![
        rule(
            "",
            ".spec.parent",
            Refusal::Invalid,
            "!has(self.spec.parent) || self.spec.parent != self.metadata.name",
            "a Resource can't be inside itself: name another parent, or none",
        ),
        rule(
            "spec.identity",
            ".key",
            Refusal::Required,
            "self.kind == 'Logical' || has(self.key)",
            "a Machine needs its host key here, a DeviceUUID the device's UUID",
        ),
        rule(
            "spec",
            ".receiptProvider",
            Refusal::Required,
            "!has(self.identity) || self.identity.kind == 'Logical' || has(self.receiptProvider) || has(self.class)",
            "a Machine or DeviceUUID needs a receiptProvider here or from its class: nobody could ever say that it is clean",
        ),
        rule(
            "spec",
            ".policy",
            Refusal::Invalid,
            "!has(self.policy) || self.policy != 'Advisory' || ((!has(self.identity) || self.identity.kind == 'Logical') \
             && (!has(self.capacity) || self.capacity.mode == 'Exclusive') && !has(self.receiptProvider) && !has(self.parent))",
            "an Advisory Resource is Logical and Exclusive, with no receiptProvider and no parent",
        ),
        rule(
            "spec.incumbent.protectedWindows[]",
            ".endsAt",
            Refusal::Invalid,
            "self.endsAt > self.startsAt",
            "a window ends after it starts: endsAt must be later than startsAt",
        ),
    ]
}

/// What a class may say.
fn class() -> Vec<Rule> {
    vec![rule(
        "spec",
        ".policy",
        Refusal::Invalid,
        "!has(self.policy) || self.policy != 'Advisory' || ((!has(self.capacity) || self.capacity.mode == 'Exclusive') \
         && !has(self.receiptProvider))",
        "Advisory Resources are Exclusive and have no receiptProvider",
    )]
}

const STATUS_STAYS: &str = "!has(oldSelf.status) || has(self.status)";
const OCCUPIED: &str = "has(oldSelf.status) && has(oldSelf.status.occupants) && size(oldSelf.status.occupants) > 0";
const AWAITED: &str = "has(oldSelf.status) && has(oldSelf.status.queue) \
    && ((has(oldSelf.status.queue.ordinary) && size(oldSelf.status.queue.ordinary) > 0) \
    || (has(oldSelf.status.queue.drains) && size(oldSelf.status.queue.drains) > 0))";

/// True of an update that leaves `field` as it was, whether it is there or not.
fn same(parent: &str, field: &str) -> String {
    let (new, old) = (format!("self{parent}.{field}"), format!("oldSelf{parent}.{field}"));
    format!("has({new}) == has({old}) && (!has({new}) || {new} == {old})")
}

/// C7: what can't change while a Resource is in use.
fn in_use() -> Vec<Rule> {
    let mut rules = vec![rule(
        "",
        ".spec.capacity",
        Refusal::Forbidden,
        &format!("!(({OCCUPIED}) || ({AWAITED})) || ({})", same(".spec", "capacity")),
        "CapacityInUse: capacity can't change while anything occupies this Resource or waits for it; \
         set lending.mode: Unavailable, and change it when status.occupants and status.queue are empty",
    )];
    for field in ["identity", "receiptProvider", "parent", "node", "policy"] {
        rules.push(rule(
            "",
            &format!(".spec.{field}"),
            Refusal::Forbidden,
            &format!("!({OCCUPIED}) || ({})", same(".spec", field)),
            "ResourceInUse: identity, receiptProvider, parent, node and policy can't change while anything occupies this Resource; \
             set lending.mode: Unavailable, and change them when status.occupants is empty",
        ));
    }
    rules
}

/// O6: what no ledger may say, whoever writes it.
fn ledger() -> Vec<Rule> {
    vec![
        rule("", ".status", Refusal::Forbidden, STATUS_STAYS, "the ledger can't be removed: it says who occupies this Resource"),
        rule(
            "status",
            ".revision",
            Refusal::Forbidden,
            "self == oldSelf || self.revision > oldSelf.revision",
            "revision must grow with every change of the ledger: read it again and decide anew",
        ),
        rule(
            "status",
            ".term",
            Refusal::Forbidden,
            "self.term >= oldSelf.term",
            "term can't fall: a later leader has written this ledger, so this one must stop",
        ),
        rule(
            "status",
            ".lastFence",
            Refusal::Forbidden,
            "self.lastFence >= oldSelf.lastFence",
            "lastFence can't fall: a fence once given is never given again",
        ),
        rule(
            "status",
            ".occupants",
            Refusal::Forbidden,
            "!has(self.occupants) || !has(self.effective) || (self.effective.capacity.mode == 'Shared' \
             && has(self.effective.capacity.unlimited) && self.effective.capacity.unlimited) \
             || self.occupants.map(o, o.quantity).sum() <= (self.effective.capacity.mode == 'Shared' \
             && has(self.effective.capacity.quantity) ? self.effective.capacity.quantity : 1)",
            "the occupants' quantities add up to more than effective.capacity",
        ),
        rule(
            "status",
            ".occupants",
            Refusal::Forbidden,
            "!has(self.occupants) || size(self.occupants) < 2 || self.occupants.all(o, o.mode == 'Shared')",
            "an Exclusive occupant must be alone",
        ),
        rule(
            "status",
            ".occupants",
            Refusal::Forbidden,
            "!has(self.occupants) || self.occupants.all(i, o, i == 0 || self.occupants[i - 1].fence < o.fence)",
            "occupants must stand in the order of their fences, no two with the same",
        ),
        rule(
            "status",
            ".lastFence",
            Refusal::Forbidden,
            "!has(self.occupants) || size(self.occupants) == 0 || self.occupants[size(self.occupants) - 1].fence <= self.lastFence",
            "no occupant's fence may be above lastFence",
        ),
    ]
}

/// What a claim may ask for.
fn requests() -> Vec<Rule> {
    vec![
        rule(
            "spec.requests[]",
            "",
            Refusal::Invalid,
            "(has(self.resource) ? 1 : 0) + (has(self.key) ? 1 : 0) + (has(self.selector) ? 1 : 0) == 1",
            "a request names exactly one of resource, key and selector",
        ),
        rule(
            "spec.requests[]",
            ".count",
            Refusal::Invalid,
            "!has(self.count) || has(self.selector)",
            "count goes with a selector only: make one request for each Resource or key",
        ),
        rule(
            "spec",
            ".requests",
            Refusal::Invalid,
            "self.requests.map(r, has(r.count) ? r.count : 1).sum() <= 16",
            "a claim asks for at most 16 Resources in all: lower a count",
        ),
        rule(
            "spec",
            ".drain",
            Refusal::Invalid,
            "!has(self.drain) || self.requests.all(r, !has(r.selector))",
            "a drain names Resources by resource or key, not by selector",
        ),
        rule(
            "spec",
            ".requests",
            Refusal::Invalid,
            &format!(
                "self.requests.all(a, self.requests.all(b, a.name == b.name || !((has(a.resource) && has(b.resource) \
                 && a.resource == b.resource) || (has(a.key) && has(b.key) && a.key == b.key)) || {} != {}))",
                scope_of("a"),
                scope_of("b"),
            ),
            "two requests name the same Resource or key: give them different scopes, or make one of them",
        ),
    ]
}

/// A request's scope as a list: its own, else the claim's, else none (M6).
fn scope_of(request: &str) -> String {
    let parts = |from: &str| format!("[{from}.scope.apiVersion, {from}.scope.kind, {from}.scope.name]");
    format!("(has({request}.scope) ? {} : (has(self.scope) ? {} : []))", parts(request), parts("self"))
}

/// How a claim may change.
fn claim() -> Vec<Rule> {
    vec![
        rule("", ".status", Refusal::Forbidden, STATUS_STAYS, "the status of a claim can't be removed"),
        rule(
            "spec",
            ".release",
            Refusal::Forbidden,
            "!has(oldSelf.release) || (has(self.release) && self.release == oldSelf.release)",
            "release is set once: a released claim can't be taken back or released otherwise",
        ),
        rule(
            "status.phase",
            "",
            Refusal::Forbidden,
            "self == oldSelf || !(oldSelf in ['Released', 'Cancelled', 'Denied', 'TimedOut', 'Expired', 'Revoked'])",
            "this phase is final: a claim that ended stays so",
        ),
    ]
}

/// L5: every field of a claim but two is written once, those that are added later too.
fn fixed(fields: &[String]) -> Vec<Rule> {
    let fixed = fields.iter().filter(|field| !["release", "ttlSecondsAfterFinished"].contains(&field.as_str()));
    let rule_for = |field: &String| {
        rule(
            "spec",
            &format!(".{field}"),
            Refusal::Forbidden,
            &same("", field),
            "a claim can't be changed, but for release and ttlSecondsAfterFinished: make another claim",
        )
    };
    fixed.map(rule_for).collect()
}

/// L5: whom a Revocation is about.
fn revocation() -> Vec<Rule> {
    vec![rule("spec", ".claim", Refusal::Invalid, "has(self.claim) != has(self.fence)", "a Revocation names either a claim or a fence")]
}

/// R8: what a person vouches for.
fn owner_release() -> Vec<Rule> {
    vec![
        rule(
            "spec",
            ".confirmName",
            Refusal::Invalid,
            "self.confirmName == self.resource",
            "confirmName must be the Resource's name, as in resource: type it again to say that you mean this one",
        ),
        rule(
            "spec",
            ".ledger",
            Refusal::Invalid,
            "!has(self.fence) || !has(self.ledger) || !self.ledger",
            "an OwnerRelease names a fence, or says ledger: true, not both",
        ),
    ]
}

/// What is written once.
fn immutable(message: &'static str) -> Vec<Rule> {
    vec![rule("spec", "", Refusal::Forbidden, "self == oldSelf", message)]
}
