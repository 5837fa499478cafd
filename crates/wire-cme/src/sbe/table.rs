//! The macro that turns a table of templates into message types, their parser and their encoder.

/// Declares the messages of a schema:
///
/// ```text
/// messages! {
///     enum Body of schema 1 behind SIZE;
///     46 Book = "MDIncrementalRefreshBook46", EventRoot, 11, decimals 9 {
///         entries: BookEntry, 32, GroupSize, since 0, "NoMDEntries";
///     }
/// }
/// ```
/// Template id, type, name, layout and length of the root block, implied decimals of prices; then its groups:
/// layout and length of an entry, form of the group's head, the schema version that brought the group; then
/// `+ name, "Name";` where data of any length end the message. `SIZE` is what stands before a message, its
/// first two bytes the size of everything.
macro_rules! messages {
    (
        enum $body:ident of schema $schema:literal behind $frame:ident;
        $(
            $id:literal $name:ident = $spec:literal, $root:ident, $block:literal, decimals $decimals:literal {
                $($group:ident: $entry:ident, $entry_block:literal, $dimension:ident, since $since:literal, $label:literal;)*
                $(+ $data:ident, $data_label:literal;)?
            }
        )*
    ) => {
        $(
            #[doc = concat!("`", $spec, "`: root block and groups, in place.")]
            #[derive(Clone, Copy, PartialEq, Eq, Debug)]
            pub struct $name<'a> {
                /// The root block.
                pub root: Block<'a, $root>,
                $(#[doc = concat!("`", $label, "`.")] pub $group: Entries<'a, $entry>,)*
                $(#[doc = concat!("`", $data_label, "`, of any length.")] pub $data: &'a [u8],)?
            }

            impl<'a> $name<'a> {
                /// The template's number.
                pub const TEMPLATE: u16 = $id;

                // Out of line: thirty of these in one function take the compiler minutes, in every program
                // that parses.
                #[inline(never)]
                #[allow(unused_mut, reason = "a template without groups changes nothing after the root")]
                fn split(body: &'a [u8], header: &MessageHeader) -> Result<($name<'a>, &'a [u8]), Malformed> {
                    let version = version_of(header.version.get(), $decimals);
                    let (root, mut rest) = Block::split(body, header.block_length.get(), version)?;
                    $(let $group = if precedes(version, $since) {
                        Entries::none()
                    } else {
                        let (entries, after) = Entries::split::<$dimension>(rest, version)?;
                        rest = after;
                        entries
                    };)*
                    $(let ($data, rest) = $crate::sbe::split_data(rest)?;)?
                    Ok(($name { root, $($group,)* $($data,)? }, rest))
                }

                /// Reads a message known to be of this template, from its header on; groups of later versions
                /// are ignored.
                #[inline(always)]
                pub fn parse(message: &'a [u8]) -> Result<$name<'a>, Malformed> {
                    let (header, body) = prefix::<MessageHeader>(message)?;
                    match (header.schema_id.get(), header.template_id.get()) {
                        ($schema, $id) => $name::split(body, header).map(|(m, _)| m),
                        ($schema, other) => Err(Malformed::UnknownTemplate(other)),
                        (other, _) => Err(Malformed::BadValue { offset: 4, value: other as u8 }),
                    }
                }

                /// As [`Self::parse`], without saying what is wrong: quicker, as nothing but the message goes
                /// through the result.
                #[inline(always)]
                #[allow(unused_mut, unused_assignments, reason = "nothing is read after the last group")]
                pub fn read(message: &'a [u8]) -> Option<$name<'a>> {
                    let (header, body) = prefix::<MessageHeader>(message).ok()?;
                    if (header.schema_id.get(), header.template_id.get()) != ($schema, $id) {
                        return None;
                    }
                    let version = version_of(header.version.get(), $decimals);
                    let (root, mut rest) = Block::take(body, header.block_length.get(), version)?;
                    $(let $group = if precedes(version, $since) {
                        Entries::none()
                    } else {
                        let (entries, after) = Entries::take::<$dimension>(rest, version)?;
                        rest = after;
                        entries
                    };)*
                    $(let ($data, rest) = $crate::sbe::split_data(rest).ok()?;)?
                    let _ = rest;
                    Some($name { root, $($group,)* $($data,)? })
                }

                /// Writes a message, size first, as the newest schema version that has it lays it out; its
                /// length, `None` if `buffer` is too small or a group has more than 255 entries.
                #[allow(clippy::too_many_arguments, reason = "one for each group")]
                pub fn encode(
                    buffer: &mut [u8],
                    root: &$root,
                    $($group: impl IntoIterator<Item = $entry>,)*
                    $($data: &[u8],)?
                ) -> Option<usize> {
                    const VERSION: u16 = version_of(NEWEST_VERSION, $decimals);
                    let header = MessageHeader {
                        block_length: le::U16::new($block),
                        template_id: le::U16::new($id),
                        schema_id: le::U16::new($schema),
                        version: le::U16::new(VERSION),
                    };
                    let builder = MessageBuilder::behind($frame, buffer, header, VERSION, root);
                    $(let builder = builder.group::<$dimension, $entry>($entry_block, $group);)*
                    $(let builder = builder.data($data);)?
                    builder.finish()
                }

                fn encode_again(&self, buffer: &mut [u8], header: MessageHeader) -> Option<usize> {
                    let version = version_of(header.version.get(), $decimals);
                    let builder = MessageBuilder::behind($frame, buffer, header, version, &self.root.get());
                    $(let builder = if precedes(version, $since) {
                        builder
                    } else {
                        builder.group::<$dimension, $entry>(self.$group.block_length(), self.$group)
                    };)*
                    $(let builder = builder.data(self.$data);)?
                    builder.finish()
                }

                fn visit(&self, f: &mut dyn FnMut(Visit<'_>)) {
                    visit_root(&self.root, $decimals, f);
                    $(visit_entries($label, self.$group, $decimals, f);)*
                    $(f(Visit::Field($data_label, $crate::layout::FieldValue::Text(self.$data)));)?
                }
            }
        )*

        #[doc = concat!("One message of schema ", $schema, ".")]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $body<'a> {
            $(#[doc = concat!("`", $spec, "`, template ", $id, ".")] $name($name<'a>),)*
        }

        impl<'a> $body<'a> {
            /// The schema's number.
            pub const SCHEMA: u16 = $schema;

            /// Number, name, length of the root block and names of the groups of every template.
            pub const TEMPLATES: &'static [Template] = &[$(Template {
                id: $id,
                name: $spec,
                block_length: $block,
                groups: &[$(($label, $entry_block, $since)),*],
            }),*];

            /// Reads what follows a message header; also gives what follows the last group known.
            fn split(body: &'a [u8], header: &MessageHeader) -> Result<($body<'a>, &'a [u8]), Malformed> {
                match header.template_id.get() {
                    $($id => $name::split(body, header).map(|(m, rest)| ($body::$name(m), rest)),)*
                    unknown => Err(Malformed::UnknownTemplate(unknown)),
                }
            }

            /// Writes the message, size first, from its decoded fields; its length, `None` if `buffer` is too
            /// small. Padding is zero.
            fn encode_again(&self, buffer: &mut [u8], header: MessageHeader) -> Option<usize> {
                match self {
                    $($body::$name(m) => m.encode_again(buffer, header),)*
                }
            }

            /// Its name in the schema.
            pub fn name(&self) -> &'static str {
                match self {
                    $($body::$name(_) => $spec,)*
                }
            }

            /// Its fields in wire order, named as in the schema.
            pub fn visit(&self, f: &mut dyn FnMut(Visit<'_>)) {
                match self {
                    $($body::$name(m) => m.visit(f),)*
                }
            }
        }
    };
}
pub(crate) use messages;
