//! The words of a selector, one at a time, each with where it begins.

use std::borrow::Cow;

use ferrymq_types::PROPERTY_NAME_LENGTH_MAX;

use crate::error::{SelectorError, SelectorErrorKind};

/// Most characters of a word that an error repeats.
const SHOWN_MAX: usize = 40;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Word(Word),
    Name(String),
    /// Between single quotes.
    String(String),
    /// Between double quotes.
    Bytes(Vec<u8>),
    /// Without its sign, which is a token of its own.
    Exact(u64),
    Approximate(f64),
    Symbol(Symbol),
}

/// A reserved word; none is a property name. Case does not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    And,
    Between,
    Escape,
    False,
    In,
    Is,
    Like,
    Not,
    Null,
    Or,
    True,
}

const WORDS: [(&str, Word); 11] = [
    ("AND", Word::And),
    ("BETWEEN", Word::Between),
    ("ESCAPE", Word::Escape),
    ("FALSE", Word::False),
    ("IN", Word::In),
    ("IS", Word::Is),
    ("LIKE", Word::Like),
    ("NOT", Word::Not),
    ("NULL", Word::Null),
    ("OR", Word::Or),
    ("TRUE", Word::True),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symbol {
    Open,
    Close,
    Comma,
    Plus,
    Minus,
    Times,
    Over,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A token and where it stands: its first character counts from 1, and the bytes are of the text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Placed {
    pub(crate) token: Token,
    pub(crate) position: usize,
    begin: usize,
    end: usize,
}

/// Cuts a text into tokens. Each byte is looked at a bounded number of times.
#[derive(Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a str,
    /// Bytes and characters before what is not read yet.
    byte: usize,
    character: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            byte: 0,
            character: 0,
        }
    }

    /// Where the next character stands, from 1.
    pub(crate) fn position(&self) -> usize {
        self.character.saturating_add(1)
    }

    /// What a token looks like in the text, cut short.
    pub(crate) fn shown(&self, placed: &Placed) -> String {
        let text = self.text.get(placed.begin..placed.end).unwrap_or_default();
        match text.char_indices().nth(SHOWN_MAX) {
            Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
            None => text.to_owned(),
        }
    }

    /// The next token; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Placed>, SelectorError> {
        self.take_while(char::is_whitespace);
        let (position, begin) = (self.position(), self.byte);
        let Some(character) = self.peek() else {
            return Ok(None);
        };
        let token = match character {
            '\'' => Token::String(self.quoted('\'', position)?.into_owned()),
            '"' => Token::Bytes(self.byte_string(position)?),
            '.' | '0'..='9' => self.number(position)?,
            _ if begins_name(character) => self.name(position)?,
            _ => Token::Symbol(self.symbol(character, position)?),
        };
        Ok(Some(Placed {
            token,
            position,
            begin,
            end: self.byte,
        }))
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.byte..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self, character: char) {
        self.byte = self.byte.saturating_add(character.len_utf8());
        self.character = self.character.saturating_add(1);
    }

    /// Takes the next character if it is this one.
    fn takes(&mut self, wanted: char) -> bool {
        let here = self.peek() == Some(wanted);
        if here {
            self.advance(wanted);
        }
        here
    }

    fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        for character in rest.chars() {
            if !test(character) {
                break;
            }
            self.advance(character);
        }
        let taken = rest.len().saturating_sub(self.rest().len());
        rest.get(..taken).unwrap_or_default()
    }

    /// What is between two quotes; a doubled quote is one.
    fn quoted(&mut self, quote: char, position: usize) -> Result<Cow<'a, str>, SelectorError> {
        self.advance(quote);
        let mut content = Cow::Borrowed(self.take_while(|c| c != quote));
        loop {
            if !self.takes(quote) {
                return Err(error(position, SelectorErrorKind::OpenQuote));
            }
            if !self.takes(quote) {
                return Ok(content);
            }
            let content = content.to_mut();
            content.push(quote);
            content.push_str(self.take_while(|c| c != quote));
        }
    }

    fn byte_string(&mut self, position: usize) -> Result<Vec<u8>, SelectorError> {
        let text = self.quoted('"', position)?;
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        digits
            .and_then(bytes_of_hex)
            .ok_or_else(|| error(position, SelectorErrorKind::ByteString))
    }

    fn name(&mut self, position: usize) -> Result<Token, SelectorError> {
        let begin = self.byte;
        loop {
            self.take_while(continues_name);
            if !self.takes('.') {
                break;
            }
            if !self.peek().is_some_and(begins_name) {
                return Err(error(self.position(), SelectorErrorKind::Name));
            }
        }
        let name = self.text.get(begin..self.byte).unwrap_or_default();
        if let Some((_, word)) = WORDS
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(name))
        {
            return Ok(Token::Word(*word));
        }
        if name.len() > PROPERTY_NAME_LENGTH_MAX {
            return Err(error(position, SelectorErrorKind::NameTooLong));
        }
        Ok(Token::Name(name.to_owned()))
    }

    /// `0x` and hex digits, `0` and octal digits, decimal digits; or with a point or an exponent.
    fn number(&mut self, position: usize) -> Result<Token, SelectorError> {
        let begin = self.byte;
        let too_large = || error(position, SelectorErrorKind::NumberTooLarge);
        let whole = self.take_while(|c| c.is_ascii_digit());
        let number = if whole == "0" && (self.takes('x') || self.takes('X')) {
            let digits = self.take_while(|c| c.is_ascii_hexdigit());
            if digits.is_empty() {
                return Err(self.expected_in_number("a hex digit"));
            }
            let number = u64::from_str_radix(digits, 16).map_err(|_| too_large())?;
            self.takes_suffix();
            Token::Exact(number)
        } else if self.is_approximate() {
            self.fraction_and_exponent(whole.is_empty())?;
            let text = self.text.get(begin..self.byte).unwrap_or_default();
            let number: f64 = text.parse().map_err(|_| too_large())?;
            if !number.is_finite() {
                return Err(too_large());
            }
            Token::Approximate(number)
        } else {
            let octal = whole.len() > 1 && whole.starts_with('0');
            if octal && let Some(place) = whole.find(['8', '9']) {
                let place = position.saturating_add(place);
                return Err(error(place, SelectorErrorKind::Number("an octal digit")));
            }
            let radix = if octal { 8 } else { 10 };
            let number = u64::from_str_radix(whole, radix).map_err(|_| too_large())?;
            self.takes_suffix();
            Token::Exact(number)
        };
        match self.peek() {
            Some(next) if continues_name(next) || next == '.' => {
                Err(self.expected_in_number("its end"))
            }
            Some(_) | None => Ok(number),
        }
    }

    fn takes_suffix(&mut self) {
        let _ = self.takes('L') || self.takes('l');
    }

    fn is_approximate(&self) -> bool {
        matches!(self.peek(), Some('.' | 'e' | 'E'))
    }

    fn fraction_and_exponent(&mut self, needs_fraction: bool) -> Result<(), SelectorError> {
        if self.takes('.') {
            let fraction = self.take_while(|c| c.is_ascii_digit());
            if fraction.is_empty() && needs_fraction {
                return Err(self.expected_in_number("a digit"));
            }
        }
        if self.takes('e') || self.takes('E') {
            let _ = self.takes('+') || self.takes('-');
            if self.take_while(|c| c.is_ascii_digit()).is_empty() {
                return Err(self.expected_in_number("a digit of the exponent"));
            }
        }
        Ok(())
    }

    fn expected_in_number(&self, expected: &'static str) -> SelectorError {
        error(self.position(), SelectorErrorKind::Number(expected))
    }

    fn symbol(&mut self, character: char, position: usize) -> Result<Symbol, SelectorError> {
        let symbol = match character {
            '(' => Symbol::Open,
            ')' => Symbol::Close,
            ',' => Symbol::Comma,
            '+' => Symbol::Plus,
            '-' => Symbol::Minus,
            '*' => Symbol::Times,
            '/' => Symbol::Over,
            '=' => Symbol::Equal,
            '<' => Symbol::Less,
            '>' => Symbol::Greater,
            _ => return Err(error(position, SelectorErrorKind::Character(character))),
        };
        self.advance(character);
        Ok(match symbol {
            Symbol::Less if self.takes('=') => Symbol::LessOrEqual,
            Symbol::Less if self.takes('>') => Symbol::NotEqual,
            Symbol::Greater if self.takes('=') => Symbol::GreaterOrEqual,
            Symbol::Open
            | Symbol::Close
            | Symbol::Comma
            | Symbol::Plus
            | Symbol::Minus
            | Symbol::Times
            | Symbol::Over
            | Symbol::Equal
            | Symbol::NotEqual
            | Symbol::Less
            | Symbol::LessOrEqual
            | Symbol::Greater
            | Symbol::GreaterOrEqual => symbol,
        })
    }
}

fn error(position: usize, kind: SelectorErrorKind) -> SelectorError {
    SelectorError { position, kind }
}

fn begins_name(character: char) -> bool {
    character.is_alphabetic() || matches!(character, '_' | '$')
}

fn continues_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '_' | '$')
}

/// `None` if they are no pairs of hex digits.
fn bytes_of_hex(digits: &str) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |d: u8| {
        char::from(d)
            .to_digit(16)
            .and_then(|value| u8::try_from(value).ok())
    };
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect()
}
