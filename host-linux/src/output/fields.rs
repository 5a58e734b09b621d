//! Objects of a JSON document, with their keys in a given order.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Keys and values of an object.
#[derive(Clone, Debug)]
pub struct Fields(pub Vec<(&'static str, Value)>);

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}
