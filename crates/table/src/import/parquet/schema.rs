//! What the columns of a Parquet file mean.
//!
//! A column is a tree whose leaves the file stores. Each entry of a leaf has two numbers beside its
//! value. The *definition level* says how much of the path from the root is there: it tells null,
//! an empty list and a value apart. The *repetition level* says which list the entry continues; 0
//! begins a row. The method is that of Dremel (Melnik et al., VLDB 2010).

use super::super::quoted;
use super::cell::CellType;
use crate::values::{ValueColumn, ValueType};
use parquet::basic::{ConvertedType, LogicalType, Repetition};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};
use privet_core::{Error, Result};

/// How deep lists, structs and maps may nest.
const MAX_DEPTH: usize = 64;

/// A column at the top of the schema.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) node: Node,
}

/// A part of a column's tree. Levels are those of the entries in the leaves below it.
pub(super) enum Node {
    Leaf {
        /// The leaf's number among the leaves that are read.
        number: usize,
        cells: CellType,
        /// What its cells are as values.
        of: ValueType,
    },
    /// Null unless the definition level is at least `present`.
    Optional {
        present: i16,
        inner: Box<Node>,
    },
    Struct(Vec<(String, Node)>),
    /// A list; with keys, which are texts, a map. Empty unless the definition level is at least
    /// `filled`. An entry whose repetition level is `repetition` begins its next item.
    Repeated {
        filled: i16,
        repetition: i16,
        key: Option<Box<Node>>,
        value: Box<Node>,
    },
}

impl Node {
    /// What its cells are as values.
    pub(super) fn value_type(&self) -> ValueType {
        match self {
            Node::Leaf { of, .. } => of.clone(),
            Node::Optional { inner, .. } => inner.value_type(),
            Node::Struct(fields) => {
                let field = |(name, node): &(String, Node)| ValueColumn {
                    name: name.clone(),
                    of: node.value_type(),
                };
                ValueType::Struct(fields.iter().map(field).collect())
            }
            Node::Repeated { key: None, value, .. } => {
                ValueType::List(Box::new(value.value_type()))
            }
            Node::Repeated { value, .. } => ValueType::Map(Box::new(value.value_type())),
        }
    }

    /// The number of its first leaf.
    pub(super) fn first_leaf(&self) -> usize {
        match self {
            Node::Leaf { number, .. } => *number,
            Node::Optional { inner, .. } => inner.first_leaf(),
            // A struct without fields is refused.
            Node::Struct(fields) => fields[0].1.first_leaf(),
            Node::Repeated { key, value, .. } => key.as_ref().unwrap_or(value).first_leaf(),
        }
    }
}

/// The columns of `schema` whose numbers are `used`, in ascending order, and the numbers of their
/// leaves among all leaves of the file.
pub(super) fn columns(
    schema: &SchemaDescriptor,
    used: &[usize],
) -> Result<(Vec<Column>, Vec<usize>)> {
    let is_used = |leaf: &usize| used.contains(&schema.get_column_root_idx(*leaf));
    let leaf_numbers = (0..schema.num_columns()).filter(is_used).collect();
    let mut next_leaf = 0;
    let columns = used.iter().map(|&number| {
        let field = &schema.root_schema().get_fields()[number];
        let top = Levels { definition: 0, repetition: 0, depth: 0 };
        let node = node(field, top, &mut next_leaf).map_err(|unsupported| {
            Error::api_misuse(format!(
                "the column {} has the type {}, which cannot be imported; leave it out",
                quoted(field.name()),
                unsupported.0
            ))
        })?;
        Ok(Column { name: field.name().to_owned(), node })
    });
    Ok((columns.collect::<Result<_>>()?, leaf_numbers))
}

/// A type that cannot be imported, in words.
pub(super) struct Unsupported(pub(super) String);

fn unsupported<T>(what: impl Into<String>) -> Result<T, Unsupported> {
    Err(Unsupported(what.into()))
}

/// The levels of what is above a node.
#[derive(Clone, Copy)]
struct Levels {
    definition: i16,
    repetition: i16,
    depth: usize,
}

impl Levels {
    fn optional(self) -> Self {
        Self { definition: self.definition + 1, depth: self.depth + 1, ..self }
    }

    fn repeated(self) -> Self {
        Self { repetition: self.repetition + 1, ..self.optional() }
    }

    fn below(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }
}

fn node(field: &Type, levels: Levels, next_leaf: &mut usize) -> Result<Node, Unsupported> {
    if levels.depth > MAX_DEPTH {
        return unsupported("of lists and structs that nest too deep");
    }
    match field.get_basic_info().repetition() {
        Repetition::REQUIRED => required(field, levels, next_leaf),
        Repetition::OPTIONAL => {
            let levels = levels.optional();
            let inner = Box::new(required(field, levels, next_leaf)?);
            Ok(Node::Optional { present: levels.definition, inner })
        }
        // Old writers wrote lists in this way.
        Repetition::REPEATED => {
            let levels = levels.repeated();
            Ok(repeated(levels, None, required(field, levels, next_leaf)?))
        }
    }
}

fn repeated(levels: Levels, key: Option<Node>, value: Node) -> Node {
    let Levels { definition: filled, repetition, .. } = levels;
    Node::Repeated { filled, repetition, key: key.map(Box::new), value: Box::new(value) }
}

/// The node of `field`, whatever its own repetition.
fn required(field: &Type, levels: Levels, next_leaf: &mut usize) -> Result<Node, Unsupported> {
    if field.is_primitive() {
        let number = *next_leaf;
        *next_leaf += 1;
        let cells = CellType::of(field)?;
        return Ok(Node::Leaf { number, cells, of: cells.value_type(field) });
    }
    if is_list(field) {
        let only = only_repeated(field)?;
        let levels = levels.repeated();
        let item = match item_within(only) {
            Some(item) => node(item, levels, next_leaf)?,
            None => required(only, levels, next_leaf)?,
        };
        return Ok(repeated(levels, None, item));
    }
    if is_map(field) {
        let entry = only_repeated(field)?;
        let levels = levels.repeated();
        let [key, value] = fields_of(entry) else {
            return unsupported("of a map that lacks keys or values");
        };
        let key = node(key, levels, next_leaf)?;
        if !matches!(key, Node::Leaf { cells: CellType::Text, .. }) {
            return unsupported("of a map whose keys are not texts");
        }
        let value = node(value, levels, next_leaf)?;
        return Ok(repeated(levels, Some(key), value));
    }
    let fields = field.get_fields();
    if fields.is_empty() {
        return unsupported("of a struct without fields");
    }
    let fields = fields
        .iter()
        .map(|field| Ok((field.name().to_owned(), node(field, levels.below(), next_leaf)?)));
    Ok(Node::Struct(fields.collect::<Result<_, Unsupported>>()?))
}

fn is_list(field: &Type) -> bool {
    let info = field.get_basic_info();
    info.logical_type_ref() == Some(&LogicalType::List)
        || info.converted_type() == ConvertedType::LIST
}

fn is_map(field: &Type) -> bool {
    let info = field.get_basic_info();
    info.logical_type_ref() == Some(&LogicalType::Map)
        || matches!(info.converted_type(), ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE)
}

/// The fields of a group; none of a leaf.
fn fields_of(field: &Type) -> &[TypePtr] {
    if field.is_primitive() { &[] } else { field.get_fields() }
}

/// The one field of a list or map, which is repeated.
fn only_repeated(field: &Type) -> Result<&Type, Unsupported> {
    match fields_of(field) {
        [only] if only.get_basic_info().repetition() == Repetition::REPEATED => Ok(only),
        _ => unsupported("of a list or map that is not laid out as Parquet prescribes"),
    }
}

/// The item within the repeated field of a list, or `None` if the repeated field is the item. Old
/// writers left the group around the item out; the format's rules for backward compatibility
/// (*Parquet Logical Type Definitions*, "Lists") tell the two apart.
fn item_within(repeated: &Type) -> Option<&Type> {
    let [only] = fields_of(repeated) else { return None };
    let is_list_itself =
        is_list(repeated) || only.get_basic_info().repetition() == Repetition::REPEATED;
    let is_item = repeated.name() == "array" || repeated.name().ends_with("_tuple");
    (is_list_itself || !is_item).then_some(only)
}
