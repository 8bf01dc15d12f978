//! The certificate authority of one control plane, in memory only but for what the API server reads.

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};

use crate::Error;

/// A certificate and its key, in PEM.
pub(crate) struct Identity {
    /// The certificate.
    pub(crate) certificate: String,
    /// Its private key.
    pub(crate) key: String,
}

/// Signs the certificates of the API server and of its users.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    /// A new one.
    ///
    /// # Errors
    /// When no key can be made.
    pub(crate) fn new() -> Result<Self, Error> {
        let make = || {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, "tenure-e2e");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
            CertifiedIssuer::self_signed(params, KeyPair::generate()?)
        };
        Ok(Self { issuer: make().map_err(|error| refused("the authority", &error))? })
    }

    /// Its own certificate, in PEM.
    pub(crate) fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// For a server on loopback, by all names that clients in and out of a cluster know the API server by.
    pub(crate) fn server(&self) -> Result<Identity, Error> {
        let names = ["localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(str::to_owned)).map_err(|error| refused("the API server", &error))?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        self.sign("the API server", params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// For a user of the API server, who is in one group.
    pub(crate) fn user(&self, name: &str, group: &str) -> Result<Identity, Error> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        self.sign(name, params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// The public and the private half of a key that signs the tokens of service accounts, in PEM.
    pub(crate) fn token_key() -> Result<(String, String), Error> {
        let key = KeyPair::generate().map_err(|error| refused("service accounts", &error))?;
        Ok((key.public_key_pem(), key.serialize_pem()))
    }

    fn sign(&self, subject: &str, mut params: CertificateParams, purpose: ExtendedKeyUsagePurpose) -> Result<Identity, Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        let make = || {
            let key = KeyPair::generate()?;
            let certificate = params.signed_by(&key, &self.issuer)?;
            Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
        };
        make().map_err(|error| refused(subject, &error))
    }
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Authority")
    }
}

fn refused(subject: &str, error: &rcgen::Error) -> Error {
    Error::Certificate { subject: subject.to_owned(), why: error.to_string() }
}
