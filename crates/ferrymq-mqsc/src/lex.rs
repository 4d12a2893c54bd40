//! From the text of a command to words, each with what its brackets hold. No recursion, one pass.

use crate::SyntaxError;

/// A word and what follows it in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clause {
    /// In upper case.
    pub(crate) keyword: String,
    /// Where it begins and ends, in bytes.
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// What its brackets hold, if it has any.
    pub(crate) items: Option<Vec<Item>>,
}

/// A word or a quoted text in brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Folded to upper case if it was not quoted.
    pub(crate) text: String,
    pub(crate) quoted: bool,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Characters that a value may have without quotes; `*` is for generic names.
const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '/' | '_' | '%' | '*')
}

const fn is_separator(c: char) -> bool {
    matches!(c, ' ' | '\t' | ',')
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    fn skip_separators(&mut self) {
        let rest = self.rest();
        let trimmed = rest.trim_start_matches(is_separator);
        self.advance(rest.len().saturating_sub(trimmed.len()));
    }

    /// A word: everything up to a separator, a bracket or an apostrophe.
    fn word(&mut self) -> (&'a str, usize, usize) {
        let rest = self.rest();
        let end = rest
            .find(|c| is_separator(c) || matches!(c, '(' | ')' | '\''))
            .unwrap_or(rest.len());
        let start = self.at;
        self.advance(end);
        (rest.get(..end).unwrap_or_default(), start, self.at)
    }

    /// A quoted text; the opening apostrophe is next.
    fn quoted(&mut self) -> Result<Item, SyntaxError> {
        let start = self.at;
        self.advance(1);
        let mut text = String::new();
        loop {
            let rest = self.rest();
            let Some(end) = rest.find('\'') else {
                return Err(SyntaxError::at(
                    self.text.len(),
                    rest,
                    "the closing apostrophe is missing",
                ));
            };
            text.push_str(rest.get(..end).unwrap_or_default());
            self.advance(end.saturating_add(1));
            if self.peek() == Some('\'') {
                text.push('\'');
                self.advance(1);
            } else {
                return Ok(Item {
                    text,
                    quoted: true,
                    start,
                    end: self.at,
                });
            }
        }
    }

    fn items(&mut self, opened: usize) -> Result<Vec<Item>, SyntaxError> {
        let mut items = Vec::new();
        loop {
            self.skip_separators();
            match self.peek() {
                None => {
                    let message = "the closing bracket is missing";
                    return Err(SyntaxError::at(self.text.len().max(opened), "", message));
                }
                Some(')') => {
                    self.advance(1);
                    return Ok(items);
                }
                Some('(') => {
                    self.advance(1);
                    let message = "a value with brackets needs apostrophes";
                    return Err(SyntaxError::at(self.at, "(", message));
                }
                Some('\'') => items.push(self.quoted()?),
                Some(_) => {
                    let (word, start, end) = self.word();
                    if let Some(bad) = word.chars().find(|c| !is_plain(*c)) {
                        let message =
                            format!("a value with the character {bad:?} needs apostrophes");
                        return Err(SyntaxError::at(end, word, message));
                    }
                    items.push(Item {
                        text: word.to_ascii_uppercase(),
                        quoted: false,
                        start,
                        end,
                    });
                }
            }
        }
    }
}

/// Splits a command into words.
pub(crate) fn lex(text: &str) -> Result<Vec<Clause>, SyntaxError> {
    if let Some((at, bad)) = text
        .char_indices()
        .find(|(_, c)| c.is_control() && *c != '\t')
    {
        let message = format!("control character {bad:?} is not allowed");
        return Err(SyntaxError::at(at, "", message));
    }
    let mut lexer = Lexer { text, at: 0 };
    let mut clauses: Vec<Clause> = Vec::new();
    loop {
        lexer.skip_separators();
        match lexer.peek() {
            None => return Ok(clauses),
            Some('(') => {
                let opened = lexer.at;
                lexer.advance(1);
                let items = lexer.items(opened)?;
                let last = clauses.last_mut().filter(|c| c.items.is_none());
                let Some(last) = last else {
                    let message = "a bracket without a keyword before it";
                    return Err(SyntaxError::at(opened.saturating_add(1), "(", message));
                };
                last.items = Some(items);
                last.end = lexer.at;
            }
            Some(')') => {
                let message = "a closing bracket without an opening one";
                return Err(SyntaxError::at(lexer.at.saturating_add(1), ")", message));
            }
            Some('\'') => {
                let item = lexer.quoted()?;
                let message = "a text in apostrophes belongs in brackets after a keyword";
                return Err(SyntaxError::at(item.end, &item.text, message));
            }
            Some(_) => {
                let (word, start, end) = lexer.word();
                if !word.bytes().all(|b| b.is_ascii_alphanumeric()) {
                    return Err(SyntaxError::at(end, word, "not a keyword"));
                }
                clauses.push(Clause {
                    keyword: word.to_ascii_uppercase(),
                    start,
                    end,
                    items: None,
                });
            }
        }
    }
}
