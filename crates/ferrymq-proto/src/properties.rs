//! Message properties between `ferrymq-types` and both of their forms: on the wire and in stored rows.

use ferrymq_types::{Properties, Property, PropertyValue, ReasonCode};

use crate::{storage_v1, v1};

macro_rules! conversions {
    ($to:ident, $from:ident, $property:ty, $value:ty, $of:expr) => {
        #[doc = "Writes properties."]
        #[must_use]
        pub fn $to(properties: &Properties) -> Vec<$property> {
            use $value as V;
            let written = properties.iter().map(|property| {
                let value = match &property.value {
                    PropertyValue::Null => None,
                    PropertyValue::Boolean(value) => Some(V::Boolean(*value)),
                    PropertyValue::Bytes(value) => Some(V::Bytes(value.clone())),
                    PropertyValue::Int8(value) => Some(V::Int8(i32::from(*value))),
                    PropertyValue::Int16(value) => Some(V::Int16(i32::from(*value))),
                    PropertyValue::Int32(value) => Some(V::Int32(*value)),
                    PropertyValue::Int64(value) => Some(V::Int64(*value)),
                    PropertyValue::Float32(value) => Some(V::Float32(*value)),
                    PropertyValue::Float64(value) => Some(V::Float64(*value)),
                    PropertyValue::String(value) => Some(V::String(value.clone())),
                };
                $of(property.name.clone(), value)
            });
            written.collect()
        }

        #[doc = "Reads properties.\n\n# Errors\n2442, 2473 or 2478, as [`Properties::new`]."]
        pub fn $from(properties: Vec<$property>) -> Result<Properties, ReasonCode> {
            use $value as V;
            if properties.len() > ferrymq_types::PROPERTIES_MAX {
                return Err(ReasonCode::PROPERTIES_TOO_BIG);
            }
            let wrong = |_| ReasonCode::PROPERTY_TYPE_ERROR;
            let read = properties.into_iter().map(|property| {
                let value = match property.value {
                    None => PropertyValue::Null,
                    Some(V::Boolean(value)) => PropertyValue::Boolean(value),
                    // A copy: a slice would keep the whole frame or record in memory.
                    Some(V::Bytes(value)) => {
                        PropertyValue::Bytes(bytes::Bytes::copy_from_slice(&value))
                    }
                    Some(V::Int8(value)) => PropertyValue::Int8(value.try_into().map_err(wrong)?),
                    Some(V::Int16(value)) => PropertyValue::Int16(value.try_into().map_err(wrong)?),
                    Some(V::Int32(value)) => PropertyValue::Int32(value),
                    Some(V::Int64(value)) => PropertyValue::Int64(value),
                    Some(V::Float32(value)) => PropertyValue::Float32(value),
                    Some(V::Float64(value)) => PropertyValue::Float64(value),
                    Some(V::String(value)) => PropertyValue::String(value),
                };
                Ok(Property {
                    name: property.name,
                    value,
                })
            });
            Properties::new(read.collect::<Result<_, ReasonCode>>()?)
        }
    };
}

conversions!(
    properties_to_wire,
    properties_from_wire,
    v1::Property,
    v1::property::Value,
    |name, value| v1::Property { name, value }
);
conversions!(
    properties_to_stored,
    properties_from_stored,
    storage_v1::StoredProperty,
    storage_v1::stored_property::Value,
    |name, value| storage_v1::StoredProperty { name, value }
);

/// Bytes that the properties of a message take in a frame.
#[must_use]
pub fn properties_frame_bytes(message: &v1::Message) -> usize {
    let properties = message.descriptor.iter().flat_map(|d| &d.properties);
    properties.map(prost::Message::encoded_len).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inv_c6_properties_survive_the_wire_and_the_store() {
        let values = [
            PropertyValue::Null,
            PropertyValue::Boolean(false),
            PropertyValue::Bytes(bytes::Bytes::from_static(b"\0\xff")),
            PropertyValue::Int8(i8::MIN),
            PropertyValue::Int16(i16::MIN),
            PropertyValue::Int32(i32::MIN),
            PropertyValue::Int64(i64::MIN),
            PropertyValue::Float32(-0.0),
            PropertyValue::Float64(f64::NAN),
            PropertyValue::String("é\0".into()),
        ];
        let named = values.into_iter().enumerate().map(|(i, value)| Property {
            name: format!("p{i}"),
            value,
        });
        let properties = Properties::new(named.collect()).unwrap();
        let wire = properties_to_wire(&properties);
        assert_eq!(properties_from_wire(wire).unwrap(), properties);
        let stored = properties_to_stored(&properties);
        assert_eq!(properties_from_stored(stored).unwrap(), properties);
    }

    #[test]
    fn what_is_no_property_is_refused_with_its_code() {
        use v1::property::Value as V;
        let check = |name: &str, value, reason| {
            let name = name.to_owned();
            let wire = vec![v1::Property { name, value }];
            assert_eq!(properties_from_wire(wire), Err(reason));
        };
        check("a-b", None, ReasonCode::PROPERTY_NAME_ERROR);
        check("JMSType", None, ReasonCode::PROPERTY_NAME_ERROR);
        check("a", Some(V::Int8(128)), ReasonCode::PROPERTY_TYPE_ERROR);
        check(
            "a",
            Some(V::Int16(-32_769)),
            ReasonCode::PROPERTY_TYPE_ERROR,
        );
        let long = V::String("x".repeat(ferrymq_types::PROPERTIES_LENGTH_MAX));
        check("a", Some(long), ReasonCode::PROPERTIES_TOO_BIG);
    }
}
