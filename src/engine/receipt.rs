//! Receipts of kind Admission: an adapter says whether a granted claim may start (L1, L4). Other kinds are left alone.

use crate::api::{Admission, Cleanup, GrantState, IdentityKind, Phase, Reason, Receipt, ReceiptKind, ReceiptStatus};

use super::{
    action::{Action, Body, Urgency, Write},
    event::{Outcome, Target},
    status::instant,
    step::Engine,
    weigh,
    world::{ClaimIx, ReceiptRecord, ResourceIx, Stage},
};

impl Engine {
    pub(super) fn see_receipt(&mut self, receipt: &Receipt) {
        let name = receipt.metadata.name.clone().unwrap_or_default();
        let weighed = receipt.status.as_ref().is_some_and(|status| status.applied_at.is_some());
        if receipt.spec.kind != ReceiptKind::Admission || weighed {
            self.world.receipts.remove(&name);
            return;
        }
        let uid = receipt.metadata.uid.clone().unwrap_or_default();
        if let Some(known) = self.world.receipts.get_mut(&name)
            && known.receipt.metadata.uid.as_deref() == Some(&uid)
        {
            known.receipt.metadata.resource_version = receipt.metadata.resource_version.clone();
            return;
        }
        self.world.receipts.insert(name.clone(), ReceiptRecord { receipt: receipt.clone(), verdict: None, sent: false, number: 0 });
        self.work.receipts.insert(name);
    }

    /// Weighs a receipt that has not been weighed yet. One that counts is told so when the claim's status is confirmed.
    pub(super) fn apply_receipt(&mut self, name: &str) {
        let Some(record) = self.world.receipts.get(name) else { return };
        let receipt = record.receipt.clone();
        let verdict = self.weigh_receipt(&receipt, name);
        let verdict = ReceiptStatus { applied_at: Some(instant(self.now.wall)), ..verdict };
        if !verdict.counted {
            self.work.verdicts.insert(name.to_owned());
        }
        if let Some(record) = self.world.receipts.get_mut(name) {
            record.verdict = Some(verdict);
        }
    }

    fn weigh_receipt(&mut self, receipt: &Receipt, name: &str) -> ReceiptStatus {
        let refused = |reason| ReceiptStatus { counted: false, reason: Some(reason), ..Default::default() };
        let Some(resource) = self.world.resource(&receipt.spec.resource) else { return refused(Reason::NotParty) };
        let Some(claim) = receipt.spec.claim.as_ref().and_then(|claim| self.world.claim(&claim.uid)) else {
            return refused(Reason::NotParty);
        };
        let status = self.world.claims[claim].status.clone();
        let held = status.grants.iter().position(|grant| grant.resource == receipt.spec.resource && grant.fence == receipt.spec.fence);
        let Some(place) = held else { return refused(Reason::NotParty) };
        if let Some(reason) = self.may_admit(receipt, resource) {
            return refused(reason);
        }
        let stage = &self.world.claims[claim].stage;
        if *stage == Stage::Final || status.grants[place].state == GrantState::Ended {
            return ReceiptStatus { late: true, ..refused(Reason::Superseded) };
        }
        if !matches!(stage, Stage::Live | Stage::Committing(_)) {
            return refused(Reason::NotParty);
        }
        match receipt.spec.admission {
            Some(Admission::Admitted) => self.admit(claim, place),
            Some(Admission::Refused) if status.grants[place].admitted_at.is_some() => return refused(Reason::Superseded),
            Some(Admission::Refused) => self.refuse_admission(claim, place, receipt.spec.cleanup.unwrap_or(Cleanup::Unknown)),
            None => return refused(Reason::NotParty),
        }
        self.world.claims[claim].verdicts.push(name.to_owned());
        ReceiptStatus { counted: true, ..Default::default() }
    }

    /// Why a receipt does not count for this Resource, or `None` if it does (R2, E3).
    fn may_admit(&self, receipt: &Receipt, resource: ResourceIx) -> Option<Reason> {
        let user = receipt.spec.reporter.as_ref().map(|reporter| reporter.user.as_str()).unwrap_or_default();
        if !weigh::is_adapter(&self.world, resource, user) {
            return Some(Reason::NotAnAdapter);
        }
        let effective = self.world.resources[resource].ledger.effective.as_ref()?;
        if effective.receipt_provider.is_some() && effective.receipt_provider != receipt.spec.provider {
            return Some(Reason::WrongProvider);
        }
        if effective.identity.kind == IdentityKind::Logical {
            return None;
        }
        let parent = effective.parent.as_deref().and_then(|parent| self.world.resource(parent));
        let above = parent
            .and_then(|parent| self.world.resources[parent].ledger.effective.as_ref())
            .and_then(|above| above.identity.key.as_deref());
        let own = effective.identity.key.as_deref();
        let host = receipt.spec.provider_host_key.as_deref();
        if !same_key(host, own) && !same_key(host, above) {
            return Some(Reason::WrongHostKey);
        }
        (effective.identity.kind == IdentityKind::DeviceUUID && !same_key(receipt.spec.device_key.as_deref(), own))
            .then_some(Reason::WrongDevice)
    }

    fn admit(&mut self, claim: ClaimIx, place: usize) {
        let now = instant(self.now.wall);
        self.change_claim(claim, Urgency::Decision, "an adapter admitted it", |status| {
            status.grants[place].admitted_at.get_or_insert(now);
            let all = status.grants.iter().all(|grant| grant.admitted_at.is_some() || grant.state == GrantState::Ended);
            if all && status.phase == Phase::Granted {
                status.phase = Phase::Active;
                status.admitted_at = Some(now);
                status.admission_deadline = None;
            }
        });
    }

    fn refuse_admission(&mut self, claim: ClaimIx, place: usize, cleanup: Cleanup) {
        self.change_claim(claim, Urgency::Decision, "an adapter refused it", |status| status.grants[place].refused_with = Some(cleanup));
        let resource = self.world.claims[claim].status.grants[place].resource.clone();
        self.end(claim, Phase::Cancelled, Reason::AdmissionRefused, &format!("the adapter of {resource} refused to admit it: {cleanup:?}"));
    }

    /// A claim's status is confirmed: receipts that led to it may be told so.
    pub(super) fn verdicts_due(&mut self, claim: ClaimIx) {
        let names = std::mem::take(&mut self.world.claims[claim].verdicts);
        self.work.verdicts.extend(names);
    }

    pub(super) fn emit_verdicts(&mut self) {
        for name in std::mem::take(&mut self.work.verdicts) {
            let Some(record) = self.world.receipts.get_mut(&name) else { continue };
            let Some(verdict) = record.verdict.clone().filter(|_| !record.sent) else { continue };
            record.sent = true;
            self.last_write += 1;
            record.number = self.last_write;
            self.work.actions.push(Action::Write(Write {
                number: self.last_write,
                target: Target::Receipt(name),
                uid: record.receipt.metadata.uid.clone().unwrap_or_default(),
                resource_version: record.receipt.metadata.resource_version.clone().unwrap_or_default(),
                body: Body::Receipt(Box::new(verdict)),
                urgency: Urgency::Verdict,
                cause: "weigh a receipt",
            }));
        }
    }

    pub(super) fn wrote_verdict(&mut self, number: u64, name: &str, outcome: &Outcome) {
        if self.world.receipts.get(name).is_none_or(|record| record.number != number) {
            return;
        }
        match outcome {
            Outcome::Written { .. } | Outcome::Refused { permanent: true, .. } => {
                self.world.receipts.remove(name);
            }
            Outcome::Refused { .. } | Outcome::Unknown => {
                if let Some(receipt) = self.world.receipts.get_mut(name) {
                    receipt.sent = false;
                    self.work.verdicts.insert(name.to_owned());
                }
            }
        }
    }
}

/// Keys are compared without case and braces (R2, E3).
fn same_key(a: Option<&str>, b: Option<&str>) -> bool {
    let plain = |key: &str| key.trim_matches(['{', '}']).to_ascii_lowercase();
    a.zip(b).is_some_and(|(a, b)| plain(a) == plain(b))
}
