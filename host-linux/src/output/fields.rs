//! Objects of a JSON document, with their keys in a given order.

use serde::{Serialize, Serializer};
use serde_json::Value;

/// Keys and values of an object.
#[derive(Clone, Debug)]
pub struct Fields<K = &'static str>(pub Vec<(K, Value)>);

impl<K: Serialize> Serialize for Fields<K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}
