//! Makes a derived schema one that an API server takes: no defaults, no nulls, no unsigned formats, conditions keyed by type.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::json;
use thiserror::Error;

use super::bounds::{API_VERSION, COUNT, LABEL, MESSAGE, TEXT};
use super::rules;

/// Why an API server, or this project, would not take a schema.
#[derive(Debug, Error)]
pub enum Error {
    /// Such a format is no part of the API conventions.
    #[error("{path} has the format {format}; make it an i64")]
    Unsigned {
        /// Where.
        path: String,
        /// Which.
        format: String,
    },
    /// A rule, or a field that must be there, has no place in the schema.
    #[error("there is no {0}: a rule of src/api/rules.rs, or a required field, is about it")]
    Nowhere(String),
}

/// Fields that the rules of the API server need, and that the controller always writes: kind, place and name.
const REQUIRED: [(&str, &str, &[&str]); 2] =
    [("Resource", "status", &["formatVersion", "revision", "term", "lastFence", "occupiedQuantity"]), ("Claim", "status", &["phase"])];

/// An object that nobody here looks into.
pub fn opaque_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "maxProperties": 64, "x-kubernetes-preserve-unknown-fields": true})
}

/// Makes the schema of `kind` one that an API server takes, with its rules.
pub fn finish(kind: &str, root: &mut JSONSchemaProps) -> Result<(), Error> {
    conform("", root)?;
    for (_, at, names) in REQUIRED.iter().filter(|(of, ..)| *of == kind) {
        let required = place(root, at)?.required.get_or_insert_default();
        required.extend(names.iter().map(|name| (*name).to_owned()));
        required.sort();
        required.dedup();
    }
    let fields: Vec<String> = place(root, "spec")?.properties.iter().flatten().map(|(name, _)| name.clone()).collect();
    for rule in rules::of(kind, &fields) {
        place(root, rule.at)?.x_kubernetes_validations.get_or_insert_default().push(ValidationRule {
            rule: rule.rule,
            message: Some(rule.message.to_owned()),
            reason: Some(rule.refusal.as_str().to_owned()),
            field_path: (!rule.field.is_empty()).then_some(rule.field),
            ..Default::default()
        });
    }
    Ok(())
}

/// The part of a schema at a place such as `spec.requests[]`.
fn place<'a>(root: &'a mut JSONSchemaProps, at: &str) -> Result<&'a mut JSONSchemaProps, Error> {
    let nowhere = || Error::Nowhere(at.to_owned());
    let mut part = root;
    for step in at.split('.').filter(|step| !step.is_empty()) {
        let name = step.trim_end_matches("[]");
        part = part.properties.as_mut().and_then(|properties| properties.get_mut(name)).ok_or_else(nowhere)?;
        if step.ends_with("[]") {
            part = match &mut part.items {
                Some(JSONSchemaPropsOrArray::Schema(item)) => item,
                _ => return Err(nowhere()),
            };
        }
    }
    Ok(part)
}

/// Makes one part of a schema, and all inside it, conform.
fn conform(path: &str, part: &mut JSONSchemaProps) -> Result<(), Error> {
    // The reader knows what a field left out means; a default would hide from it that it was, and a class could not decide.
    part.default = None;
    // A field without a value is left out.
    part.nullable = None;
    if let Some(format) = part.format.clone().filter(|format| format.starts_with("uint")) {
        return Err(Error::Unsigned { path: path.to_owned(), format });
    }
    if path.ends_with(".status.conditions") {
        part.x_kubernetes_list_type = Some("map".to_owned());
        part.x_kubernetes_list_map_keys = Some(vec!["type".to_owned()]);
    } else if path == ".spec.requests" {
        part.x_kubernetes_list_type = Some("map".to_owned());
        part.x_kubernetes_list_map_keys = Some(vec!["name".to_owned()]);
    } else if part.type_.as_deref() == Some("array") {
        part.x_kubernetes_list_type.get_or_insert_with(|| "atomic".to_owned());
    }
    bound_foreign(path, part);
    for (name, property) in part.properties.iter_mut().flatten() {
        conform(&format!("{path}.{name}"), property)?;
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut part.additional_properties {
        conform(&format!("{path}.*"), values)?;
    }
    match &mut part.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => conform(&format!("{path}[]"), item),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().try_for_each(|item| conform(&format!("{path}[]"), item)),
        None => Ok(()),
    }
}

/// Bounds what Kubernetes' own types leave open: label selectors and conditions.
fn bound_foreign(path: &str, part: &mut JSONSchemaProps) {
    let ends = |end: &str| path.ends_with(end);
    let length = |length: usize| i64::try_from(length).ok();
    if ends(".matchLabels") {
        part.max_properties = Some(32);
    } else if ends(".matchLabels.*") || ends(".matchExpressions[].values[]") {
        part.max_length = length(LABEL);
    } else if ends(".matchExpressions") {
        part.max_items = Some(32);
    } else if ends(".matchExpressions[].values") {
        part.max_items = Some(64);
    } else if ends(".matchExpressions[].key") || ends(".conditions[].type") {
        part.max_length = length(API_VERSION);
    } else if ends(".matchExpressions[].operator") {
        part.enum_ = Some(["In", "NotIn", "Exists", "DoesNotExist"].map(|word| JSON(json!(word))).to_vec());
    } else if ends(".conditions[].status") {
        part.enum_ = Some(["True", "False", "Unknown"].map(|word| JSON(json!(word))).to_vec());
    } else if ends(".conditions[].observedGeneration") {
        (part.minimum, part.maximum) = (Some(0.0), Some(COUNT as f64));
    } else if ends(".conditions[].reason") {
        part.max_length = length(TEXT);
    } else if ends(".conditions[].message") {
        part.max_length = length(MESSAGE);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, to_value};

    use super::*;

    fn schema(of_spec: serde_json::Value) -> JSONSchemaProps {
        from_value(json!({"type": "object", "properties": {"spec": of_spec}})).unwrap()
    }

    #[test]
    fn an_unsigned_number_is_refused_wherever_it_is() {
        let mut root =
            schema(json!({"type": "object", "properties": {"sizes": {"type": "array", "items": {"type": "integer", "format": "uint32"}}}}));
        let problem = finish("Size", &mut root).unwrap_err();
        assert_eq!(problem.to_string(), ".spec.sizes[] has the format uint32; make it an i64");
    }

    #[test]
    fn a_rule_about_nothing_is_refused() {
        let mut root = schema(json!({"type": "object", "properties": {}}));
        let problem = finish("Revocation", &mut root).map(|()| place(&mut root, "spec.gone[]").map(|_| ()));
        assert!(matches!(problem, Ok(Err(Error::Nowhere(at))) if at == "spec.gone[]"));
    }

    #[test]
    fn what_is_left_out_stays_left_out() {
        let mut root = schema(json!({"type": "object", "properties": {"mode": {"type": "string", "default": "Shared", "nullable": true}}}));
        finish("Size", &mut root).unwrap();
        assert_eq!(to_value(&root).unwrap()["properties"]["spec"]["properties"]["mode"], json!({"type": "string"}));
    }
}
