//! Enums of which something is said, variant by variant.

/// Declares an enum as a table. Each variant stands with its row, which `row` gives, and `ALL` has them in order.
///
/// ```
/// gpulower_image::table! {
///     /// What a symbol is.
///     #[derive(Clone, Copy)]
///     pub enum Kind: &'static str {
///         /// A function that the host launches.
///         Kernel = "kernel";
///     }
/// }
/// assert_eq!(Kind::ALL.map(Kind::row), ["kernel"]);
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! table {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident: $row:ty { $($(#[$doc:meta])* $variant:ident = $text:expr;)+ }
    ) => {
        $(#[$meta])*
        $vis enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// All of them, in order.
            $vis const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];

            const fn row(self) -> $row {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}
