//! The objects that claims live as long as (S1, S2, S5, M6).

use crate::api::{GrantState, PinnedScope, Reason, Scope};

use super::{
    action::{Action, Urgency},
    event::{ScopeKind, ScopeTarget},
    status::{instant, set_condition},
    step::Engine,
    weigh::Obstacle,
    world::{ClaimIx, KindRecord, ScopeFact, Stage},
};

/// What is known of one scope of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    /// It lives, with this uid.
    Lives(String),
    /// It was seen once and is gone, finished, or another of its name.
    Ended,
    /// It has not been there yet.
    NotYet,
    /// Nobody can tell.
    Unknown,
}

impl Engine {
    /// What holds a claim back before any Resource is looked at, in the order of the list.
    pub(super) fn held_back(&self, claim: ClaimIx) -> Vec<Obstacle> {
        let mut found = Vec::new();
        let mut add = |reason| found.push(Obstacle { reason, request: 0, resource: None });
        if self.world.paused {
            add(Reason::Paused);
        }
        if self.is_skewed() {
            add(Reason::ClockSkew);
        }
        for (request, scope) in self.scopes(claim) {
            match self.known(claim, request.as_deref(), &scope) {
                Known::NotYet => add(Reason::ScopeNotFound),
                Known::Unknown => add(Reason::ScopeUnknown),
                Known::Lives(_) | Known::Ended => {}
            }
        }
        found
    }

    /// A claim's scopes: its own, and those of its requests by their name.
    fn scopes(&self, claim: ClaimIx) -> Vec<(Option<String>, Scope)> {
        let spec = &self.world.claims[claim].spec;
        let own = spec.scope.iter().map(|scope| (None, scope.clone()));
        let others = spec.requests.iter().filter_map(|request| Some((Some(request.name.clone()), request.scope.clone()?)));
        own.chain(others).collect()
    }

    fn target(&self, claim: ClaimIx, scope: &Scope) -> ScopeTarget {
        let kind = ScopeKind { api_version: scope.api_version.clone(), kind: scope.kind.clone() };
        let is_namespace = scope.api_version == "v1" && scope.kind == "Namespace";
        let namespace = if is_namespace { String::new() } else { self.world.claims[claim].namespace.to_string() };
        ScopeTarget { kind, namespace, name: scope.name.clone() }
    }

    fn known(&self, claim: ClaimIx, request: Option<&str>, scope: &Scope) -> Known {
        let record = &self.world.claims[claim];
        let pinned = record.status.scopes.iter().find(|pinned| pinned.request.as_deref() == request).map(|pinned| pinned.uid.as_str());
        let target = self.target(claim, scope);
        match self.world.scope_facts.get(&target) {
            Some(fact) if pinned.is_some_and(|pinned| pinned != fact.uid) || fact.finished => Known::Ended,
            Some(fact) => Known::Lives(fact.uid.clone()),
            None if !self.world.kinds.get(&target.kind).is_some_and(|kind| kind.readable) => Known::Unknown,
            None if pinned.is_some() => Known::Ended,
            None => Known::NotYet,
        }
    }

    /// Keeps the uids of scopes seen for the first time (S1).
    pub(super) fn pin_scopes(&mut self, claim: ClaimIx) {
        for (request, scope) in self.scopes(claim) {
            let pinned = self.world.claims[claim].status.scopes.iter().any(|pinned| pinned.request == request);
            let fact = self.world.scope_facts.get(&self.target(claim, &scope)).cloned();
            if let (false, Some(fact)) = (pinned, fact) {
                let status = std::sync::Arc::make_mut(&mut self.world.claims[claim].status);
                status.scopes.push(PinnedScope {
                    request,
                    api_version: scope.api_version,
                    kind: scope.kind,
                    name: scope.name,
                    uid: fact.uid,
                });
            }
        }
    }

    /// True when the claim's own scope has ended, or that of every part of it (S1, M6).
    pub(super) fn is_out_of_scope(&self, claim: ClaimIx) -> bool {
        let spec = &self.world.claims[claim].spec;
        if let Some(scope) = &spec.scope
            && self.known(claim, None, scope) == Known::Ended
        {
            return true;
        }
        !spec.requests.is_empty()
            && spec
                .requests
                .iter()
                .all(|request| request.scope.as_ref().is_some_and(|scope| self.known(claim, Some(&request.name), scope) == Known::Ended))
    }

    /// Ends the parts whose own scope has ended (M6).
    pub(super) fn end_parts(&mut self, claim: ClaimIx) {
        let spec = self.world.claims[claim].spec.clone();
        let over: Vec<&str> = spec
            .requests
            .iter()
            .filter_map(|request| {
                let scope = request.scope.as_ref()?;
                (self.known(claim, Some(&request.name), scope) == Known::Ended).then_some(request.name.as_str())
            })
            .collect();
        let held = |grant: &crate::api::Grant| grant.state == GrantState::Held && over.contains(&grant.request.as_str());
        if over.is_empty() || !self.world.claims[claim].status.grants.iter().any(held) {
            return;
        }
        let now = instant(self.now.wall);
        self.change_claim(claim, Urgency::Decision, "a part's scope has ended", |status| {
            for grant in status.grants.iter_mut().filter(|grant| held(grant)) {
                grant.state = GrantState::Ended;
                grant.ended_at = Some(now);
            }
        });
    }

    /// The uid of the scope that a request lives as long as, if it has one and it was seen (M5).
    pub(super) fn scope_uid(&self, claim: ClaimIx, request: &str) -> Option<String> {
        let record = &self.world.claims[claim];
        let spec = record.spec.requests.iter().find(|spec| spec.name == request)?;
        let by = spec.scope.as_ref().map(|_| request);
        let scope = spec.scope.as_ref().or(record.spec.scope.as_ref())?;
        match self.known(claim, by, scope) {
            Known::Lives(uid) => Some(uid),
            _ => record.status.scopes.iter().find(|pinned| pinned.request.as_deref() == by).map(|pinned| pinned.uid.clone()),
        }
    }

    /// S5: shows on a holding claim that its scope can't be seen.
    pub(super) fn show_scope_doubt(&mut self, claim: ClaimIx) {
        let scopes = self.scopes(claim);
        let doubt = scopes.iter().any(|(request, scope)| self.known(claim, request.as_deref(), scope) == Known::Unknown);
        let shown = self.world.claims[claim]
            .status
            .conditions
            .iter()
            .any(|condition| condition.type_ == "ScopeUnknown" && condition.status == "True");
        if doubt == shown {
            return;
        }
        let (now, generation) = (instant(self.now.wall), self.world.claims[claim].generation);
        self.change_claim(claim, Urgency::Display, "whether its scope can be seen", |status| {
            let message = if doubt { "the object it lives as long as can't be read; it holds on" } else { "its scope can be read" };
            set_condition(status, "ScopeUnknown", doubt, if doubt { "ScopeUnknown" } else { "ScopeSeen" }, message, now, Some(generation));
        });
    }

    /// Notes what a claim's scopes name, and asks for their kinds to be read.
    pub(super) fn follow_scopes(&mut self, claim: ClaimIx) {
        if !self.world.claims[claim].scopes.is_empty() || self.world.claims[claim].stage == Stage::Final {
            return;
        }
        let targets: Vec<ScopeTarget> = self.scopes(claim).iter().map(|(_, scope)| self.target(claim, scope)).collect();
        for target in &targets {
            self.world.scoped.entry(target.clone()).or_default().insert(claim);
            let kind = self.world.kinds.entry(target.kind.clone()).or_default();
            kind.named += 1;
            if kind.named == 1 && target.kind.kind != "Namespace" {
                self.work.actions.push(Action::Follow(target.kind.clone()));
            }
        }
        self.world.claims[claim].scopes = targets;
    }

    /// The claim is over: what it named may be let go.
    pub(super) fn let_go_of_scopes(&mut self, claim: ClaimIx) {
        for target in std::mem::take(&mut self.world.claims[claim].scopes) {
            if let Some(claims) = self.world.scoped.get_mut(&target) {
                claims.remove(&claim);
                if claims.is_empty() {
                    self.world.scoped.remove(&target);
                }
            }
            if let Some(kind) = self.world.kinds.get_mut(&target.kind) {
                kind.named = kind.named.saturating_sub(1);
                if kind.named == 0 && target.kind.kind != "Namespace" {
                    self.world.kinds.remove(&target.kind);
                    self.world.scope_facts.retain(|other, _| other.kind != target.kind);
                    self.work.actions.push(Action::Unfollow(target.kind));
                }
            }
        }
    }

    /// A scope target was seen, or is gone.
    pub(super) fn scope_changed(&mut self, target: &ScopeTarget, fact: Option<ScopeFact>) {
        let before = match &fact {
            Some(fact) => self.world.scope_facts.insert(target.clone(), fact.clone()),
            None => self.world.scope_facts.remove(target),
        };
        if before != fact
            && let Some(claims) = self.world.scoped.get(target)
        {
            self.work.claims.extend(claims.iter().copied());
        }
    }

    /// A kind can be read, or can't any more: then what was known of it is not known (S5).
    pub(super) fn kind_readable(&mut self, kind: &ScopeKind, readable: bool) {
        let record: &mut KindRecord = self.world.kinds.entry(kind.clone()).or_default();
        if std::mem::replace(&mut record.readable, readable) == readable {
            return;
        }
        if !readable {
            self.world.scope_facts.retain(|target, _| target.kind != *kind);
        }
        let claims: Vec<ClaimIx> =
            self.world.scoped.iter().filter(|(target, _)| target.kind == *kind).flat_map(|(_, claims)| claims.iter().copied()).collect();
        self.work.claims.extend(claims);
    }
}
