//! LIKE without backtracking: a pattern is cut at its `%`, and each part is looked for once, from left to right.

use core::fmt;

/// The longest part between two `%` that holds a `_`, in characters. Parts without `_`, before the first `%` and after the
/// last have no limit but the selector's. Beyond: 2459.
///
/// A limit of our own: such a part is looked for with one bit per character, so that a search takes one step for each
/// character of the value whatever the pattern is.
pub const LIKE_PART_LENGTH_MAX: usize = 128;

/// The pattern of a LIKE.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LikePattern {
    /// What the value begins with; all of it if there is no `%`.
    prefix: Vec<One>,
    /// After the first `%`.
    rest: Option<Rest>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rest {
    /// Between two `%`, none empty.
    middle: Vec<Part>,
    /// What the value ends with.
    suffix: Vec<One>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Without `_`: the standard library's search is linear.
    Text(String),
    Wild(WildPart),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum One {
    /// `_`.
    Any,
    Character(char),
}

impl One {
    fn matches(self, character: char) -> bool {
        match self {
            Self::Any => true,
            Self::Character(own) => own == character,
        }
    }
}

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatternProblem {
    Escape,
    PartTooLong,
}

impl LikePattern {
    pub(crate) fn parse(text: &str, escape: Option<char>) -> Result<Self, PatternProblem> {
        let mut parts: Vec<Vec<One>> = Vec::new();
        let mut part = Vec::new();
        let mut characters = text.chars();
        while let Some(character) = characters.next() {
            if Some(character) == escape {
                match characters.next() {
                    Some(escaped) if matches!(escaped, '%' | '_') || Some(escaped) == escape => {
                        part.push(One::Character(escaped));
                    }
                    Some(_) | None => return Err(PatternProblem::Escape),
                }
            } else if character == '%' {
                parts.push(core::mem::take(&mut part));
            } else if character == '_' {
                part.push(One::Any);
            } else {
                part.push(One::Character(character));
            }
        }
        let suffix = part;
        let mut parts = parts.into_iter();
        let Some(prefix) = parts.next() else {
            return Ok(Self {
                prefix: suffix,
                rest: None,
            });
        };
        let middle = parts.filter(|part| !part.is_empty()).map(Part::new);
        Ok(Self {
            prefix,
            rest: Some(Rest {
                middle: middle.collect::<Result<_, _>>()?,
                suffix,
            }),
        })
    }

    /// Whether all of `value` has this form. Steps: at most twice the characters of `value` and of the pattern.
    pub(crate) fn matches(&self, value: &str) -> bool {
        let Some(value) = strip_prefix(value, &self.prefix) else {
            return false;
        };
        let Some(rest) = &self.rest else {
            return value.is_empty();
        };
        let Some(mut value) = strip_suffix(value, &rest.suffix) else {
            return false;
        };
        // The leftmost place of each part leaves the most for those after it.
        for part in &rest.middle {
            match part.strip_through(value) {
                Some(after) => value = after,
                None => return false,
            }
        }
        true
    }
}

fn strip_prefix<'a>(value: &'a str, prefix: &[One]) -> Option<&'a str> {
    let mut characters = value.chars();
    for one in prefix {
        if !one.matches(characters.next()?) {
            return None;
        }
    }
    Some(characters.as_str())
}

fn strip_suffix<'a>(value: &'a str, suffix: &[One]) -> Option<&'a str> {
    let mut characters = value.chars();
    for one in suffix.iter().rev() {
        if !one.matches(characters.next_back()?) {
            return None;
        }
    }
    Some(characters.as_str())
}

impl Part {
    fn new(part: Vec<One>) -> Result<Self, PatternProblem> {
        let text: Option<String> = part.iter().map(|one| one.character()).collect();
        match text {
            Some(text) => Ok(Self::Text(text)),
            None => WildPart::new(part).map(Self::Wild),
        }
    }

    /// What follows the leftmost place of this part in `value`.
    fn strip_through<'a>(&self, value: &'a str) -> Option<&'a str> {
        match self {
            Self::Text(text) => value.split_once(text.as_str()).map(|(_, after)| after),
            Self::Wild(part) => part.strip_through(value),
        }
    }
}

impl One {
    fn character(self) -> Option<char> {
        match self {
            Self::Any => None,
            Self::Character(character) => Some(character),
        }
    }
}

/// A part with `_`, looked for by the shift-and method: bit `n` of the state says that the first `n + 1` characters of the
/// part match the value's last `n + 1`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WildPart {
    part: Vec<One>,
    /// For each character of the part, in order, where it may stand.
    masks: Vec<(char, u128)>,
    /// Where any other character may stand.
    any: u128,
    /// The last place.
    last: u128,
}

impl WildPart {
    fn new(part: Vec<One>) -> Result<Self, PatternProblem> {
        if part.len() > LIKE_PART_LENGTH_MAX {
            return Err(PatternProblem::PartTooLong);
        }
        let places = |wanted: Option<char>| {
            let mut bit = 1_u128;
            let mut places = 0;
            for one in &part {
                if one.character().is_none() || one.character() == wanted {
                    places |= bit;
                }
                bit <<= 1;
            }
            places
        };
        let mut characters: Vec<char> = part.iter().filter_map(|one| one.character()).collect();
        characters.sort_unstable();
        characters.dedup();
        let masks = characters.iter().map(|c| (*c, places(Some(*c)))).collect();
        let any = places(None);
        let last = part.iter().skip(1).fold(1, |bit: u128, _| bit << 1);
        Ok(Self {
            part,
            masks,
            any,
            last,
        })
    }

    fn strip_through<'a>(&self, value: &'a str) -> Option<&'a str> {
        let mut state = 0_u128;
        let mut characters = value.chars();
        while let Some(character) = characters.next() {
            let mask = match self.masks.binary_search_by_key(&character, |(c, _)| *c) {
                Ok(index) => self.masks.get(index).map_or(self.any, |(_, mask)| *mask),
                Err(_) => self.any,
            };
            state = ((state << 1) | 1) & mask;
            if state & self.last != 0 {
                return Some(characters.as_str());
            }
        }
        None
    }
}

/// The escape character that a printed pattern uses where it needs one.
const PRINTED_ESCAPE: char = '\\';

impl fmt::Display for LikePattern {
    /// As it stands after LIKE: the quoted pattern, and ESCAPE if one is needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let needs_escape = self
            .ones()
            .any(|one| matches!(one, Some(One::Character('%' | '_'))));
        f.write_str("'")?;
        for one in self.ones() {
            match one {
                None => f.write_str("%")?,
                Some(One::Any) => f.write_str("_")?,
                Some(One::Character('\'')) => f.write_str("''")?,
                Some(One::Character(character)) => {
                    let special = matches!(character, '%' | '_' | PRINTED_ESCAPE);
                    if needs_escape && special {
                        write!(f, "{PRINTED_ESCAPE}")?;
                    }
                    write!(f, "{character}")?;
                }
            }
        }
        f.write_str("'")?;
        if needs_escape {
            write!(f, " ESCAPE '{PRINTED_ESCAPE}'")?;
        }
        Ok(())
    }
}

impl LikePattern {
    /// The pattern from left to right; `None` is a `%`.
    fn ones(&self) -> impl Iterator<Item = Option<One>> + '_ {
        let rest = self.rest.iter().flat_map(|rest| {
            let middle = rest.middle.iter().flat_map(|part| {
                let ones: Vec<One> = match part {
                    Part::Text(text) => text.chars().map(One::Character).collect(),
                    Part::Wild(wild) => wild.part.clone(),
                };
                core::iter::once(None).chain(ones.into_iter().map(Some))
            });
            let suffix = rest.suffix.iter().copied().map(Some);
            middle.chain(core::iter::once(None)).chain(suffix)
        });
        self.prefix.iter().copied().map(Some).chain(rest)
    }
}
