//! Message properties on their way to a getter: in the descriptor, in a header in front of the data, or nowhere.

use bytes::{Bytes, BytesMut};
use ferrymq_engine::{Presentation, PropertyOption};
use ferrymq_proto::v1;
use ferrymq_types::{MessageDescriptor, Properties, ReasonCode, rfh2};

/// What a getter asked for: 2046 if there is no such option.
pub(crate) fn property_option(option: i32) -> Result<PropertyOption, ReasonCode> {
    use v1::PropertyOption as Wanted;
    let wanted = Wanted::try_from(option).map_err(|_| ReasonCode::OPTIONS_ERROR)?;
    Ok(match wanted {
        Wanted::Unspecified => PropertyOption::AsQueueDefined,
        Wanted::AsQueueDefinedInData => PropertyOption::AsQueueDefinedInData,
        Wanted::InDescriptor => PropertyOption::InHandle,
        Wanted::ForceHeader => PropertyOption::ForceHeader,
        Wanted::Compatibility => PropertyOption::Compatibility,
        Wanted::None => PropertyOption::None,
    })
}

/// Puts the properties of a message where its getter has them. The data is converted by now, since a header says how what
/// follows it is written.
pub(crate) fn present(
    message: &mut v1::Message,
    presentation: Presentation,
    properties: &Properties,
) {
    let descriptor = message.descriptor.get_or_insert_default();
    match presentation {
        Presentation::Beside => {}
        Presentation::Dropped => descriptor.properties.clear(),
        Presentation::Header => {
            let mut written = MessageDescriptor {
                encoding: descriptor.encoding,
                coded_character_set_id: descriptor.coded_character_set_id,
                format: descriptor.format.clone(),
                properties: properties.clone(),
                ..MessageDescriptor::default()
            };
            let Some(header) = rfh2::header_of(&mut written) else {
                return;
            };
            descriptor.properties.clear();
            descriptor.encoding = written.encoding;
            descriptor.coded_character_set_id = written.coded_character_set_id;
            descriptor.format = written.format;
            message.data = in_front(&header, &message.data);
        }
    }
}

fn in_front(header: &[u8], data: &[u8]) -> Bytes {
    let mut whole = BytesMut::with_capacity(header.len().saturating_add(data.len()));
    whole.extend_from_slice(header);
    whole.extend_from_slice(data);
    whole.freeze()
}
