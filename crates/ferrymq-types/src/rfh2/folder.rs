//! Folders of a header: elements as in XML, whose text is the value of a property and whose names are its name.
//!
//! Source: IBM MQ, "NameValueData (MQCHARn)", "Property data types and dt values".

use std::collections::BTreeMap;

use crate::properties::{PROPERTY_FOLDERS, is_property_name};
use crate::{PROPERTIES_MAX, PROPERTY_NAME_LENGTH_MAX, Properties, PropertyValue, ReasonCode};

use super::RFH2_DEPTH_MAX;

/// The folder that is in no property's name.
const USER_FOLDER: &str = "usr";

/// A folder of a header.
pub(super) struct Folder<'a> {
    /// All of it.
    pub(super) text: &'a str,
    /// What it says as properties; `None` if it is something else.
    pub(super) properties: Option<Found>,
}

/// Properties by name.
pub(super) type Found = BTreeMap<String, PropertyValue>;

/// A beginning of an element.
struct Start<'a> {
    name: &'a str,
    data_type: Option<String>,
    is_nil: bool,
    has_properties: bool,
    /// `<name/>`.
    is_empty: bool,
}

/// An element that has begun.
struct Open<'a> {
    start: Start<'a>,
    text: String,
    has_children: bool,
}

const MALFORMED: ReasonCode = ReasonCode::RFH_STRING_ERROR;

/// Reads the folders of a text.
///
/// # Errors
/// 2335 if it is not made of elements, 2478 if one has too many properties.
pub(super) fn read(text: &str) -> Result<Vec<Folder<'_>>, ReasonCode> {
    let mut folders = Vec::new();
    let mut rest = trim_start(text);
    while !rest.is_empty() {
        let (folder, after) = read_folder(rest)?;
        folders.push(folder);
        rest = trim_start(after);
    }
    Ok(folders)
}

/// Padding comes as blanks, and from some as zeros.
fn trim_start(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\0')
}

fn read_folder(text: &str) -> Result<(Folder<'_>, &str), ReasonCode> {
    let mut path: Vec<Open<'_>> = Vec::new();
    let mut properties = Some(Found::new());
    let mut rest = text;
    loop {
        if let Some(end) = rest.strip_prefix("</") {
            let open = path.pop().ok_or(MALFORMED)?;
            rest = end.strip_prefix(open.start.name).ok_or(MALFORMED)?;
            rest = rest.trim_ascii_start().strip_prefix('>').ok_or(MALFORMED)?;
            close(&path, open, &mut properties)?;
        } else if let Some(start) = rest.strip_prefix('<') {
            if path.len() >= RFH2_DEPTH_MAX {
                return Err(MALFORMED);
            }
            if let Some(parent) = path.last_mut() {
                parent.has_children = true;
            }
            let (start, after) = read_start(start)?;
            rest = after;
            if path.is_empty()
                && !start.has_properties
                && !PROPERTY_FOLDERS.contains(&start.name)
                && start.name != USER_FOLDER
            {
                properties = None;
            }
            let is_empty = start.is_empty;
            let open = Open {
                start,
                text: String::new(),
                has_children: false,
            };
            if is_empty {
                close(&path, open, &mut properties)?;
            } else {
                path.push(open);
            }
        } else {
            let end = rest.find('<').ok_or(MALFORMED)?;
            let (text, after) = rest.split_at(end);
            let open = path.last_mut().ok_or(MALFORMED)?;
            unescape(text, &mut open.text)?;
            rest = after;
        }
        if path.is_empty() {
            let length = text.len().saturating_sub(rest.len());
            let text = text.get(..length).ok_or(MALFORMED)?;
            return Ok((Folder { text, properties }, rest));
        }
    }
}

/// An element ends whose parents are `path`: if it holds a value it is a property.
fn close(
    path: &[Open<'_>],
    open: Open<'_>,
    properties: &mut Option<Found>,
) -> Result<(), ReasonCode> {
    if open.has_children {
        return if open.text.trim_ascii().is_empty() {
            Ok(())
        } else {
            Err(MALFORMED)
        };
    }
    let Some(found) = properties else {
        return Ok(());
    };
    let Some((folder, groups)) = path.split_first() else {
        // A folder without properties; text in it would be none.
        if !open.text.trim_ascii().is_empty() {
            *properties = None;
        }
        return Ok(());
    };
    if found.len() >= PROPERTIES_MAX {
        return Err(ReasonCode::PROPERTIES_TOO_BIG);
    }
    let folder = Some(folder.start.name).filter(|name| *name != USER_FOLDER);
    let groups = groups.iter().map(|group| group.start.name);
    let parts = folder.into_iter().chain(groups).chain([open.start.name]);
    let Some(name) = joined(parts).filter(|name| is_property_name(name)) else {
        *properties = None;
        return Ok(());
    };
    match value(&open) {
        Some(value) => {
            if found.insert(name, value).is_some() {
                *properties = None;
            }
        }
        None => *properties = None,
    }
    Ok(())
}

/// The name of a property; `None` if it is longer than one may be.
fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> Option<String> {
    let mut name = String::new();
    for part in parts {
        if name.len().saturating_add(part.len()) >= PROPERTY_NAME_LENGTH_MAX {
            return None;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(part);
    }
    Some(name)
}

fn value(open: &Open<'_>) -> Option<PropertyValue> {
    if open.start.is_nil {
        return Some(PropertyValue::Null);
    }
    let text = open.text.as_str();
    let (text, type_name) = match open.start.data_type.as_deref() {
        Some("boolean") if text == "1" => ("true", "boolean"),
        Some("boolean") if text == "0" => ("false", "boolean"),
        Some("boolean") => (text, "boolean"),
        Some("bin.hex") => (text, "bytes"),
        Some("i1") => (text, "int8"),
        Some("i2") => (text, "int16"),
        Some("i4") => (text, "int32"),
        Some("i8" | "int") => (text, "int64"),
        Some("r4") => (text, "float32"),
        Some("r8") => (text, "float64"),
        // As a string, also what is not known.
        Some(_) | None => (text, "string"),
    };
    PropertyValue::parse(text, type_name).ok()
}

fn is_in_name(c: char) -> bool {
    !c.is_ascii_whitespace() && !matches!(c, '<' | '>' | '/' | '=' | '&' | '\'' | '"' | '\0')
}

fn read_name(text: &str) -> Result<(&str, &str), ReasonCode> {
    let end = text.find(|c| !is_in_name(c)).ok_or(MALFORMED)?;
    if end == 0 {
        return Err(MALFORMED);
    }
    Ok(text.split_at(end))
}

/// What follows the `<` of an element, to its `>`.
fn read_start(text: &str) -> Result<(Start<'_>, &str), ReasonCode> {
    let (name, mut rest) = read_name(text)?;
    let mut start = Start {
        name,
        data_type: None,
        is_nil: false,
        has_properties: false,
        is_empty: false,
    };
    loop {
        rest = rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix('>') {
            return Ok((start, after));
        }
        if let Some(after) = rest.strip_prefix("/>") {
            start.is_empty = true;
            return Ok((start, after));
        }
        let (attribute, after) = read_name(rest)?;
        let after = after
            .trim_ascii_start()
            .strip_prefix('=')
            .ok_or(MALFORMED)?;
        let after = after.trim_ascii_start();
        let quote = after.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let after = after
            .strip_prefix(quote.ok_or(MALFORMED)?)
            .ok_or(MALFORMED)?;
        let (quoted, after) = quote
            .and_then(|quote| after.split_once(quote))
            .ok_or(MALFORMED)?;
        let mut said = String::new();
        unescape(quoted, &mut said)?;
        match attribute {
            "dt" => start.data_type = Some(said),
            "xsi:nil" => start.is_nil = said == "true",
            "content" => start.has_properties = said == "properties",
            // Of no meaning here.
            _ => {}
        }
        rest = after;
    }
}

fn unescape(text: &str, out: &mut String) -> Result<(), ReasonCode> {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let (entity, after) = after.split_once(';').ok_or(MALFORMED)?;
        let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok();
        out.push(match entity {
            "lt" => '<',
            "gt" => '>',
            "amp" => '&',
            "quot" => '"',
            "apos" => '\'',
            other => {
                let digits = other.strip_prefix('#').ok_or(MALFORMED)?;
                let code = match digits.strip_prefix('x') {
                    Some(hexadecimal) => number(hexadecimal, 16),
                    None => number(digits, 10),
                };
                code.and_then(char::from_u32).ok_or(MALFORMED)?
            }
        });
        rest = after;
    }
    out.push_str(rest);
    Ok(())
}

fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c if c.is_ascii_control() => {
                out.push_str("&#");
                out.push_str(&u32::from(c).to_string());
                out.push(';');
            }
            c => out.push(c),
        }
    }
}

/// Writes properties as folders, a text each.
pub(super) fn write(properties: &Properties) -> Vec<String> {
    let mut folders: Vec<(&str, String)> = Vec::new();
    for property in properties.iter() {
        let (folder, rest) = match property.name.split_once('.') {
            Some((folder, rest)) if PROPERTY_FOLDERS.contains(&folder) => (folder, rest),
            Some(_) | None => (USER_FOLDER, property.name.as_str()),
        };
        let at = match folders.iter().position(|(name, _)| *name == folder) {
            Some(at) => at,
            None => {
                folders.push((folder, String::new()));
                folders.len().saturating_sub(1)
            }
        };
        if let Some((_, text)) = folders.get_mut(at) {
            write_property(rest, &property.value, text);
        }
    }
    folders
        .into_iter()
        .map(|(name, text)| format!("<{name}>{text}</{name}>"))
        .collect()
}

fn write_property(name: &str, value: &PropertyValue, out: &mut String) {
    let parts: Vec<&str> = name.split('.').collect();
    let (leaf, groups) = match parts.split_last() {
        Some((leaf, groups)) => (*leaf, groups),
        None => (name, &[][..]),
    };
    for group in groups {
        out.push('<');
        out.push_str(group);
        out.push('>');
    }
    let (attribute, text) = described(value);
    out.push('<');
    out.push_str(leaf);
    out.push_str(attribute);
    out.push('>');
    escape(&text, out);
    for part in parts.iter().rev() {
        out.push_str("</");
        out.push_str(part);
        out.push('>');
    }
}

/// The attribute that says a type, and the value as text.
fn described(value: &PropertyValue) -> (&'static str, String) {
    match value {
        PropertyValue::Null => (" xsi:nil='true'", String::new()),
        PropertyValue::Boolean(value) => {
            (" dt='boolean'", if *value { "1" } else { "0" }.to_owned())
        }
        PropertyValue::Bytes(bytes) => (
            " dt='bin.hex'",
            bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        ),
        PropertyValue::Int8(n) => (" dt='i1'", n.to_string()),
        PropertyValue::Int16(n) => (" dt='i2'", n.to_string()),
        PropertyValue::Int32(n) => (" dt='i4'", n.to_string()),
        PropertyValue::Int64(n) => (" dt='i8'", n.to_string()),
        PropertyValue::Float32(n) => (" dt='r4'", n.to_string()),
        PropertyValue::Float64(n) => (" dt='r8'", n.to_string()),
        PropertyValue::String(text) => ("", text.clone()),
    }
}
