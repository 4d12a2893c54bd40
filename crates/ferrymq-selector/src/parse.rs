//! From text to a condition, by recursive descent without a step back. Weakest first: OR, AND, NOT, comparisons, `+ -`,
//! `* /`, signs.

use std::collections::BTreeSet;

use crate::SELECTOR_LENGTH_MAX;
use crate::condition::{Arithmetic, Comparison, Condition, Level, Operand, Sign};
use crate::error::{SelectorError, SelectorErrorKind};
use crate::evaluate::Truth;
use crate::like::{LikePattern, PatternProblem};
use crate::token::{Lexer, Placed, Symbol, Token, Word};
use crate::value::{Fields, Value};

/// How deep parentheses, signs and NOT may be nested. Beyond: 2459.
///
/// A limit of our own: parsing, judging, printing and dropping a selector recurse as deep as it is nested.
pub const NESTING_MAX: usize = 64;

/// A condition, or a value: which of them is known only after what follows it.
#[derive(Debug)]
enum Parsed {
    Condition(Condition),
    Operand(Operand),
}

/// What was parsed, and where it begins.
#[derive(Debug)]
struct Part {
    parsed: Parsed,
    position: usize,
}

pub(crate) fn parse(text: &str) -> Result<Condition, SelectorError> {
    if text.len() > SELECTOR_LENGTH_MAX {
        return Err(SelectorError {
            position: 1,
            kind: SelectorErrorKind::TooLong,
        });
    }
    let mut parser = Parser {
        lexer: Lexer::new(text),
        ahead: None,
        depth: 0,
        names: false,
    };
    parser.ahead = parser.lexer.next()?;
    let part = parser.any()?;
    let condition = parser.condition(part)?;
    if parser.ahead.is_some() {
        return Err(parser.unexpected("an operator or the end"));
    }
    if parser.names {
        return Ok(condition);
    }
    match condition.evaluate(&Nothing) {
        Truth::True => Ok(Condition::Constant(true)),
        Truth::False | Truth::Unknown => Err(SelectorError {
            position: 1,
            kind: SelectorErrorKind::NeverTrue,
        }),
    }
}

/// A message without a property.
struct Nothing;

impl Fields for Nothing {
    fn get(&self, _: &str) -> Option<Value<'_>> {
        None
    }
}

struct Parser<'a> {
    lexer: Lexer<'a>,
    ahead: Option<Placed>,
    depth: usize,
    /// Whether a property was named.
    names: bool,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<Part, SelectorError> {
        self.list(Word::Or, Self::all, Condition::Or)
    }

    fn all(&mut self) -> Result<Part, SelectorError> {
        self.list(Word::And, Self::negation, Condition::And)
    }

    /// One part, or several with a word between them.
    fn list(
        &mut self,
        word: Word,
        element: fn(&mut Self) -> Result<Part, SelectorError>,
        join: fn(Vec<Condition>) -> Condition,
    ) -> Result<Part, SelectorError> {
        let first = element(self)?;
        if !self.is_word(word) {
            return Ok(first);
        }
        let position = first.position;
        let mut conditions = vec![self.condition(first)?];
        while self.takes_word(word)? {
            let next = element(self)?;
            conditions.push(self.condition(next)?);
        }
        Ok(Part {
            parsed: Parsed::Condition(join(conditions)),
            position,
        })
    }

    fn negation(&mut self) -> Result<Part, SelectorError> {
        let position = self.position();
        if !self.takes_word(Word::Not)? {
            return self.comparison();
        }
        let inner = self.nested(Self::negation)?;
        let inner = self.condition(inner)?;
        Ok(Part {
            parsed: Parsed::Condition(Condition::Not(Box::new(inner))),
            position,
        })
    }

    fn comparison(&mut self) -> Result<Part, SelectorError> {
        let left = self.chain(Level::Additive)?;
        let position = left.position;
        if let Some(operator) = self.comparison_ahead() {
            self.step()?;
            let right = self.chain(Level::Additive)?;
            let ordering = operator.is_ordering();
            let left = self.operand(left, ordering)?;
            let right = self.operand(right, ordering)?;
            return Ok(condition_at(
                position,
                Condition::Compare {
                    left,
                    operator,
                    right,
                },
            ));
        }
        if self.takes_word(Word::Is)? {
            let name = self.name(left, "a property name before IS")?;
            let negated = self.takes_word(Word::Not)?;
            if !self.takes_word(Word::Null)? {
                return Err(self.unexpected(if negated { "NULL" } else { "NULL or NOT NULL" }));
            }
            return Ok(condition_at(position, Condition::IsNull { name, negated }));
        }
        let negated = self.takes_word(Word::Not)?;
        if self.takes_word(Word::Between)? {
            return self.between(left, negated);
        }
        if self.takes_word(Word::In)? {
            let name = self.name(left, "a property name before IN")?;
            let strings = self.strings()?;
            return Ok(condition_at(
                position,
                Condition::In {
                    name,
                    strings,
                    negated,
                },
            ));
        }
        if self.takes_word(Word::Like)? {
            let name = self.name(left, "a property name before LIKE")?;
            let pattern = self.pattern()?;
            return Ok(condition_at(
                position,
                Condition::Like {
                    name,
                    pattern,
                    negated,
                },
            ));
        }
        if negated {
            return Err(self.unexpected("BETWEEN, IN or LIKE"));
        }
        Ok(left)
    }

    fn between(&mut self, value: Part, negated: bool) -> Result<Part, SelectorError> {
        let position = value.position;
        let value = self.operand(value, true)?;
        let low = self.chain(Level::Additive)?;
        let low = self.operand(low, true)?;
        if !self.takes_word(Word::And)? {
            return Err(self.unexpected("AND and the upper bound"));
        }
        let high = self.chain(Level::Additive)?;
        let high = self.operand(high, true)?;
        Ok(condition_at(
            position,
            Condition::Between {
                value,
                low,
                high,
                negated,
            },
        ))
    }

    fn strings(&mut self) -> Result<BTreeSet<String>, SelectorError> {
        if !self.takes(Symbol::Open)? {
            return Err(self.unexpected("( and strings"));
        }
        let mut strings = BTreeSet::new();
        loop {
            strings.insert(self.string("a string")?);
            if self.takes(Symbol::Close)? {
                return Ok(strings);
            }
            if !self.takes(Symbol::Comma)? {
                return Err(self.unexpected(", or )"));
            }
        }
    }

    fn pattern(&mut self) -> Result<LikePattern, SelectorError> {
        let position = self.position();
        let text = self.string("a pattern in single quotes")?;
        let mut escape = None;
        if self.takes_word(Word::Escape)? {
            let expected = "one character in single quotes";
            let refused = self.unexpected(expected);
            let text = self.string(expected)?;
            let mut characters = text.chars();
            escape = match (characters.next(), characters.next()) {
                (Some(one), None) => Some(one),
                (Some(_), Some(_)) | (None, _) => return Err(refused),
            };
        }
        LikePattern::parse(&text, escape).map_err(|problem| SelectorError {
            position,
            kind: match problem {
                PatternProblem::Escape => SelectorErrorKind::Escape,
                PatternProblem::PartTooLong => SelectorErrorKind::PatternPartTooLong,
            },
        })
    }

    /// Operators of one level, or one operand of the next.
    fn chain(&mut self, level: Level) -> Result<Part, SelectorError> {
        let element = match level {
            Level::Additive => |parser: &mut Self| parser.chain(Level::Multiplicative),
            Level::Multiplicative => Self::sign,
        };
        let first = element(self)?;
        if self.arithmetic_ahead(level).is_none() {
            return Ok(first);
        }
        let position = first.position;
        let (first, mut steps) = match self.operand(first, true)? {
            // `(a + b) + c` is `a + b + c`: both go from left to right.
            Operand::Chain { first, steps } if is_of_level(&steps, level) => (first, steps),
            operand @ (Operand::Literal(_)
            | Operand::Property(_)
            | Operand::Sign(..)
            | Operand::Chain { .. }) => (Box::new(operand), Vec::new()),
        };
        while let Some(operator) = self.arithmetic_ahead(level) {
            self.step()?;
            let next = element(self)?;
            steps.push((operator, self.operand(next, true)?));
        }
        Ok(Part {
            parsed: Parsed::Operand(Operand::Chain { first, steps }),
            position,
        })
    }

    fn sign(&mut self) -> Result<Part, SelectorError> {
        let position = self.position();
        let sign = if self.takes(Symbol::Minus)? {
            Sign::Minus
        } else if self.takes(Symbol::Plus)? {
            Sign::Plus
        } else {
            return self.primary();
        };
        // The one number that fits only with its sign.
        if sign == Sign::Minus && self.token() == Some(&Token::Exact(i64::MIN.unsigned_abs())) {
            self.step()?;
            return Ok(literal_at(position, Value::Integer(i64::MIN)));
        }
        let inner = self.nested(Self::sign)?;
        let operand = match (sign, self.operand(inner, true)?) {
            (Sign::Plus, number @ Operand::Literal(_)) => number,
            (Sign::Minus, Operand::Literal(Value::Integer(number))) => {
                let number = number.checked_neg().ok_or(SelectorError {
                    position,
                    kind: SelectorErrorKind::NumberTooLarge,
                })?;
                Operand::Literal(Value::Integer(number))
            }
            (Sign::Minus, Operand::Literal(Value::Float(number))) => {
                Operand::Literal(Value::Float(-number))
            }
            (
                sign,
                operand @ (Operand::Literal(_)
                | Operand::Property(_)
                | Operand::Sign(..)
                | Operand::Chain { .. }),
            ) => Operand::Sign(sign, Box::new(operand)),
        };
        Ok(Part {
            parsed: Parsed::Operand(operand),
            position,
        })
    }

    fn primary(&mut self) -> Result<Part, SelectorError> {
        let position = self.position();
        if self.takes(Symbol::Open)? {
            let inner = self.nested(Self::any)?;
            if !self.takes(Symbol::Close)? {
                return Err(self.unexpected("an operator or )"));
            }
            return Ok(Part { position, ..inner });
        }
        let value = match self.token() {
            Some(Token::Word(Word::True)) => Value::Boolean(true),
            Some(Token::Word(Word::False)) => Value::Boolean(false),
            Some(Token::String(string)) => Value::String(string.clone().into()),
            Some(Token::Bytes(bytes)) => Value::Bytes(bytes.clone().into()),
            Some(Token::Approximate(number)) => Value::Float(*number),
            Some(Token::Exact(number)) => match i64::try_from(*number) {
                Ok(number) => Value::Integer(number),
                Err(_) => {
                    return Err(SelectorError {
                        position,
                        kind: SelectorErrorKind::NumberTooLarge,
                    });
                }
            },
            Some(Token::Name(name)) => {
                let name = name.clone();
                self.names = true;
                self.step()?;
                return Ok(Part {
                    parsed: Parsed::Operand(Operand::Property(name)),
                    position,
                });
            }
            Some(Token::Word(
                Word::And
                | Word::Between
                | Word::Escape
                | Word::In
                | Word::Is
                | Word::Like
                | Word::Not
                | Word::Null
                | Word::Or,
            ))
            | Some(Token::Symbol(_))
            | None => return Err(self.unexpected("a property name, a value or (")),
        };
        self.step()?;
        Ok(literal_at(position, value))
    }

    /// Goes one level deeper.
    fn nested(
        &mut self,
        parse: fn(&mut Self) -> Result<Part, SelectorError>,
    ) -> Result<Part, SelectorError> {
        if self.depth >= NESTING_MAX {
            return Err(SelectorError {
                position: self.position(),
                kind: SelectorErrorKind::TooDeep,
            });
        }
        self.depth = self.depth.saturating_add(1);
        let parsed = parse(self);
        self.depth = self.depth.saturating_sub(1);
        parsed
    }

    /// What stands where a condition must: a property or a constant is one if it is boolean.
    fn condition(&self, part: Part) -> Result<Condition, SelectorError> {
        match part.parsed {
            Parsed::Condition(condition) => Ok(condition),
            Parsed::Operand(Operand::Property(name)) => Ok(Condition::Property(name)),
            Parsed::Operand(Operand::Literal(Value::Boolean(value))) => {
                Ok(Condition::Constant(value))
            }
            Parsed::Operand(
                Operand::Literal(
                    Value::Integer(_) | Value::Float(_) | Value::String(_) | Value::Bytes(_),
                )
                | Operand::Sign(..)
                | Operand::Chain { .. },
            ) => match &self.ahead {
                None => Err(self.unexpected("a comparison")),
                Some(_) => Err(misplaced(part.position, "a condition", "a value")),
            },
        }
    }

    /// What stands where a value must; a number if `number`.
    fn operand(&self, part: Part, number: bool) -> Result<Operand, SelectorError> {
        let position = part.position;
        match part.parsed {
            Parsed::Condition(_) => Err(misplaced(position, "a value", "a condition")),
            Parsed::Operand(Operand::Literal(
                value @ (Value::Boolean(_) | Value::String(_) | Value::Bytes(_)),
            )) if number => {
                let found = match value {
                    Value::Boolean(_) => "a boolean",
                    Value::String(_) => "a string",
                    Value::Bytes(_) => "a byte string",
                    Value::Integer(_) | Value::Float(_) => "a number",
                };
                Err(misplaced(position, "a number", found))
            }
            Parsed::Operand(operand) => Ok(operand),
        }
    }

    fn name(&self, part: Part, expected: &'static str) -> Result<String, SelectorError> {
        match part.parsed {
            Parsed::Operand(Operand::Property(name)) => Ok(name),
            Parsed::Operand(Operand::Literal(_) | Operand::Sign(..) | Operand::Chain { .. }) => {
                Err(misplaced(part.position, expected, "a value"))
            }
            Parsed::Condition(_) => Err(misplaced(part.position, expected, "a condition")),
        }
    }

    fn string(&mut self, expected: &'static str) -> Result<String, SelectorError> {
        match self.token() {
            Some(Token::String(string)) => {
                let string = string.clone();
                self.step()?;
                Ok(string)
            }
            Some(
                Token::Word(_)
                | Token::Name(_)
                | Token::Bytes(_)
                | Token::Exact(_)
                | Token::Approximate(_)
                | Token::Symbol(_),
            )
            | None => Err(self.unexpected(expected)),
        }
    }

    fn comparison_ahead(&self) -> Option<Comparison> {
        match self.symbol()? {
            Symbol::Equal => Some(Comparison::Equal),
            Symbol::NotEqual => Some(Comparison::NotEqual),
            Symbol::Less => Some(Comparison::Less),
            Symbol::LessOrEqual => Some(Comparison::LessOrEqual),
            Symbol::Greater => Some(Comparison::Greater),
            Symbol::GreaterOrEqual => Some(Comparison::GreaterOrEqual),
            Symbol::Open
            | Symbol::Close
            | Symbol::Comma
            | Symbol::Plus
            | Symbol::Minus
            | Symbol::Times
            | Symbol::Over => None,
        }
    }

    fn arithmetic_ahead(&self, level: Level) -> Option<Arithmetic> {
        let operator = match self.symbol()? {
            Symbol::Plus => Arithmetic::Add,
            Symbol::Minus => Arithmetic::Subtract,
            Symbol::Times => Arithmetic::Multiply,
            Symbol::Over => Arithmetic::Divide,
            Symbol::Open
            | Symbol::Close
            | Symbol::Comma
            | Symbol::Equal
            | Symbol::NotEqual
            | Symbol::Less
            | Symbol::LessOrEqual
            | Symbol::Greater
            | Symbol::GreaterOrEqual => return None,
        };
        (operator.level() == level).then_some(operator)
    }

    fn token(&self) -> Option<&Token> {
        self.ahead.as_ref().map(|placed| &placed.token)
    }

    fn symbol(&self) -> Option<Symbol> {
        match self.token()? {
            Token::Symbol(symbol) => Some(*symbol),
            Token::Word(_)
            | Token::Name(_)
            | Token::String(_)
            | Token::Bytes(_)
            | Token::Exact(_)
            | Token::Approximate(_) => None,
        }
    }

    fn position(&self) -> usize {
        let ahead = self.ahead.as_ref().map(|placed| placed.position);
        ahead.unwrap_or_else(|| self.lexer.position())
    }

    fn step(&mut self) -> Result<(), SelectorError> {
        self.ahead = self.lexer.next()?;
        Ok(())
    }

    fn is_word(&self, word: Word) -> bool {
        self.token() == Some(&Token::Word(word))
    }

    fn takes_word(&mut self, word: Word) -> Result<bool, SelectorError> {
        let here = self.is_word(word);
        if here {
            self.step()?;
        }
        Ok(here)
    }

    fn takes(&mut self, symbol: Symbol) -> Result<bool, SelectorError> {
        let here = self.symbol() == Some(symbol);
        if here {
            self.step()?;
        }
        Ok(here)
    }

    fn unexpected(&self, expected: &'static str) -> SelectorError {
        SelectorError {
            position: self.position(),
            kind: SelectorErrorKind::Unexpected {
                found: self.ahead.as_ref().map(|placed| self.lexer.shown(placed)),
                expected,
            },
        }
    }
}

fn is_of_level(steps: &[(Arithmetic, Operand)], level: Level) -> bool {
    steps
        .first()
        .is_some_and(|(operator, _)| operator.level() == level)
}

fn condition_at(position: usize, condition: Condition) -> Part {
    Part {
        parsed: Parsed::Condition(condition),
        position,
    }
}

fn literal_at(position: usize, value: Value<'static>) -> Part {
    Part {
        parsed: Parsed::Operand(Operand::Literal(value)),
        position,
    }
}

fn misplaced(position: usize, expected: &'static str, found: &str) -> SelectorError {
    SelectorError {
        position,
        kind: SelectorErrorKind::Unexpected {
            found: Some(found.to_owned()),
            expected,
        },
    }
}
