//! Parser for the subset of Graphviz's DOT language that describes networks: nodes, edges and
//! attributes, without subgraphs and ports.

use std::collections::{BTreeSet, HashMap};

/// A parsed graph.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Graph {
    /// Names of nodes, in the order of their first appearance.
    pub(super) nodes: Vec<String>,
    pub(super) edges: Vec<Edge>,
    /// Names of all attributes of nodes, edges and the graph, in lower case.
    pub(super) attributes: BTreeSet<String>,
}

/// A directed edge.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Number of the line in which it ends.
    pub(super) line: usize,
    pub(super) attributes: Vec<Attribute>,
}

/// An attribute, its name in lower case.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) value: String,
}

impl Edge {
    /// Value of an attribute.
    pub(super) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|attribute| attribute.name == name);
        found.map(|attribute| attribute.value.as_str())
    }
}

/// Syntax error in a line.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct DotError {
    /// Line number, from 1 on.
    pub line: usize,
    /// Text of the error.
    pub what: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Token<'t> {
    /// A name, a number, or the content of quotes.
    Word(String),
    /// `->` or `--`.
    Joint(&'t str),
    /// One of `{}[]=;,`.
    Sign(char),
}

/// A token and its line.
struct TokenAt<'t> {
    token: Token<'t>,
    line: usize,
}

/// Reads `text`.
pub(super) fn parse(text: &str) -> Result<Graph, DotError> {
    let tokens = tokens(text)?;
    let (graph, numbers) = (Graph::default(), HashMap::new());
    let mut reader = Reader { tokens: &tokens, at: 0, graph, numbers };
    reader.graph()?;
    Ok(reader.graph)
}

fn tokens(text: &str) -> Result<Vec<TokenAt<'_>>, DotError> {
    let mut tokens = Vec::new();
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let wrong = |what: &str| DotError { line, what: what.to_owned() };
        let length = match first {
            '\n' => {
                line += 1;
                1
            }
            _ if first.is_whitespace() => first.len_utf8(),
            // Preprocessor line, or comment.
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => {
                let end = rest.find("*/").ok_or_else(|| wrong("a remark without an end"))? + 2;
                line += rest.get(..end).unwrap_or_default().matches('\n').count();
                end
            }
            '"' => {
                let (word, length) = quoted(rest).ok_or_else(|| wrong("a quote without an end"))?;
                tokens.push(TokenAt { token: Token::Word(word), line });
                line += rest.get(..length).unwrap_or_default().matches('\n').count();
                length
            }
            '{' | '}' | '[' | ']' | '=' | ';' | ',' => {
                tokens.push(TokenAt { token: Token::Sign(first), line });
                1
            }
            '-' if rest.starts_with("->") || rest.starts_with("--") => {
                tokens
                    .push(TokenAt { token: Token::Joint(rest.get(..2).unwrap_or_default()), line });
                2
            }
            '-' if is_glued(text, rest) => {
                return Err(wrong("a name with '-' in it has to be in quotes"));
            }
            _ => {
                let is_in_word = |(at, next): &(usize, char)| {
                    let sign = *at == 0 && *next == '-';
                    next.is_alphanumeric() || matches!(next, '_' | '.') || sign
                };
                let count = rest.char_indices().take_while(is_in_word).count();
                let length = rest.chars().take(count).map(char::len_utf8).sum();
                if length == 0 {
                    return Err(wrong(&format!("'{first}' is not understood")));
                }
                let word = rest.get(..length).unwrap_or_default();
                tokens.push(TokenAt { token: Token::Word(word.to_owned()), line });
                length
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    Ok(tokens)
}

fn has_capacity(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.name == "capacity")
}

/// True if `rest`, a suffix of `text`, follows a letter or digit.
fn is_glued(text: &str, rest: &str) -> bool {
    let before = text.get(..text.len() - rest.len()).unwrap_or_default();
    before.chars().next_back().is_some_and(|last| last.is_alphanumeric() || last == '_')
}

/// Content of the quotes at the beginning of `text`, and the length in bytes including the quotes.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut word = String::new();
    let mut signs = text.char_indices().skip(1);
    while let Some((at, sign)) = signs.next() {
        match sign {
            '"' => return Some((word, at + 1)),
            '\\' => match signs.next()?.1 {
                '"' => word.push('"'),
                '\n' => {}
                other => word.extend(['\\', other]),
            },
            _ => word.push(sign),
        }
    }
    None
}

struct Reader<'t> {
    tokens: &'t [TokenAt<'t>],
    at: usize,
    graph: Graph,
    /// Number of each node.
    numbers: HashMap<String, u32>,
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Token<'_>> {
        self.tokens.get(self.at).map(|at| &at.token)
    }

    fn line(&self) -> usize {
        let last = self.at.min(self.tokens.len().saturating_sub(1));
        self.tokens.get(last).map_or(1, |at| at.line)
    }

    fn wrong<T>(&self, what: impl Into<String>) -> Result<T, DotError> {
        Err(DotError { line: self.line(), what: what.into() })
    }

    fn takes(&mut self, wanted: &Token<'_>) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self) -> Option<String> {
        let Some(Token::Word(word)) = self.peek() else { return None };
        let word = word.clone();
        self.at += 1;
        Some(word)
    }

    /// Parses `[strict] digraph|graph [NAME] { statements }`.
    fn graph(&mut self) -> Result<(), DotError> {
        let mut kind = self.word().unwrap_or_default().to_lowercase();
        if kind == "strict" {
            kind = self.word().unwrap_or_default().to_lowercase();
        }
        let joint = match kind.as_str() {
            "digraph" => "->",
            "graph" => "--",
            _ => return self.wrong("expected 'digraph' or 'graph'"),
        };
        let _name = self.word();
        if !self.takes(&Token::Sign('{')) {
            return self.wrong("expected '{'");
        }
        while !self.takes(&Token::Sign('}')) {
            self.statement(joint)?;
        }
        match self.peek() {
            None => Ok(()),
            Some(_) => self.wrong("nothing is expected after the graph"),
        }
    }

    /// Parses a node, an edge, a chain of edges, or an attribute of the graph.
    fn statement(&mut self, joint: &str) -> Result<(), DotError> {
        if self.takes(&Token::Sign(';')) {
            return Ok(());
        }
        let Some(first) = self.word() else {
            return self.wrong("expected a node, or '}'; subgraphs are not understood");
        };
        if self.takes(&Token::Sign('=')) {
            return match self.word() {
                Some(_) => Ok(()),
                None => self.wrong("expected a value"),
            };
        }
        match first.to_lowercase().as_str() {
            "subgraph" => return self.wrong("subgraphs are not understood"),
            "graph" | "node" | "edge" if self.peek() == Some(&Token::Sign('[')) => {
                // Defaults are used only for drawing; capacities and comments must be given for
                // each edge.
                let defaults = self.attributes()?;
                let counts = |attribute: &Attribute| {
                    first.eq_ignore_ascii_case("edge")
                        && matches!(attribute.name.as_str(), "capacity" | "comment")
                };
                return match defaults.iter().any(counts) {
                    true => self.wrong("capacity and comment are given edge by edge"),
                    false => Ok(()),
                };
            }
            _ => {}
        }
        let mut chain = vec![self.node(first)?];
        while let Some(Token::Joint(found)) = self.peek() {
            if *found != joint {
                return self.wrong(format!("expected '{joint}'"));
            }
            self.at += 1;
            match self.word() {
                Some(next) => chain.push(self.node(next)?),
                None => return self.wrong("expected a node; subgraphs are not understood"),
            }
        }
        let line = self.line();
        let attributes = self.attributes()?;
        if chain.len() == 1 && has_capacity(&attributes) {
            return self.wrong("capacity is that of an edge, not of a node");
        }
        for pair in chain.windows(2) {
            let &[from, to] = pair else { continue };
            let edge = Edge { from, to, line, attributes: attributes.clone() };
            if joint == "--" {
                self.graph.edges.push(Edge { from: to, to: from, ..edge.clone() });
            }
            self.graph.edges.push(edge);
        }
        Ok(())
    }

    fn node(&mut self, name: String) -> Result<u32, DotError> {
        if let Some(number) = self.numbers.get(&name) {
            return Ok(*number);
        }
        let Ok(number) = u32::try_from(self.graph.nodes.len()) else {
            return self.wrong("more than 2^32 nodes");
        };
        self.graph.nodes.push(name.clone());
        self.numbers.insert(name, number);
        Ok(number)
    }

    /// Parses `[name=value, …]`, repeated any number of times.
    fn attributes(&mut self) -> Result<Vec<Attribute>, DotError> {
        let mut attributes = Vec::new();
        while self.takes(&Token::Sign('[')) {
            while !self.takes(&Token::Sign(']')) {
                if self.takes(&Token::Sign(',')) || self.takes(&Token::Sign(';')) {
                    continue;
                }
                let Some(name) = self.word() else {
                    return self.wrong("expected an attribute, or ']'");
                };
                let value = match self.takes(&Token::Sign('=')) {
                    true => self.word(),
                    false => Some("true".to_owned()),
                };
                match value {
                    Some(_)
                        if name.eq_ignore_ascii_case("capacity") && has_capacity(&attributes) =>
                    {
                        return self.wrong("a second capacity");
                    }
                    Some(value) => {
                        let name = name.to_lowercase();
                        self.graph.attributes.insert(name.clone());
                        attributes.push(Attribute { name, value });
                    }
                    None => return self.wrong("expected a value"),
                }
            }
        }
        Ok(attributes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_edges_chains_and_attributes_are_read() {
        let text = "// remark\nstrict digraph \"a net\" {\n rankdir=LR; node [shape=box]\n H0 [label=\"x\"];\n \
                    H0 -> S1 -> \"H 2\" [capacity=2.5, comment=\"H0, \\\"q\\\"\"][x]\n /* two\n lines */ S1->H0 }\n";
        let graph = parse(text).unwrap();
        assert_eq!(graph.nodes, ["H0", "S1", "H 2"]);
        let ends: Vec<_> = graph.edges.iter().map(|edge| (edge.from, edge.to, edge.line)).collect();
        assert_eq!(ends, [(0, 1, 5), (1, 2, 5), (1, 0, 7)]);
        let named =
            |name: &str, value: &str| Attribute { name: name.to_owned(), value: value.to_owned() };
        let expected =
            [named("capacity", "2.5"), named("comment", "H0, \"q\""), named("x", "true")];
        assert_eq!(graph.edges[0].attributes, expected);
        assert_eq!(graph.edges[1].attributes, expected);
    }

    #[test]
    fn an_undirected_edge_is_two() {
        let graph = parse("graph { a -- b [capacity=3] }").unwrap();
        let ends: Vec<_> = graph.edges.iter().map(|edge| (edge.from, edge.to)).collect();
        assert_eq!(ends, [(1, 0), (0, 1)]);
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        for (text, line, words) in [
            ("", 1, "'digraph'"),
            ("digraph\n", 1, "'{'"),
            ("digraph {\n a ->\n}", 3, "expected a node"),
            ("digraph { a -- b }", 1, "expected '->'"),
            ("digraph {\n subgraph x { a } }", 2, "subgraphs"),
            ("digraph { a -> { b c } }", 1, "subgraphs"),
            ("digraph { a [x=] }", 1, "a value"),
            ("digraph { a [x=1", 1, "']'"),
            ("digraph { a } b", 1, "after the graph"),
            ("digraph { a:port -> b }", 1, "':'"),
            ("digraph { \"a }", 1, "a quote"),
            ("digraph { /* }", 1, "a remark"),
            ("digraph {\n edge [capacity=2] }", 2, "edge by edge"),
            ("digraph {\n EDGE [Capacity=2] }", 2, "edge by edge"),
            ("digraph {\n a [capacity=2] }", 2, "of an edge"),
            ("digraph { a -> b [capacity=2, Capacity=3] }", 1, "a second"),
            ("digraph {\n a -> b-1 }", 2, "in quotes"),
            ("digraph { a", 1, "expected a node"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.what.contains(words), "{text}: {error}");
            assert_eq!(error.line, line, "{text}: {error}");
        }
    }
}
