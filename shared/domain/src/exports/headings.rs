//! What columns are called, one table for all languages.

use super::Kind;
use crate::login::Language;

static ORDERS: [[&str; 12]; 3] = [
    [
        "Pedido",
        "Estado",
        "Teléfono",
        "Números",
        "Números devueltos",
        "Precio por número (unidad mínima)",
        "Total (unidad mínima)",
        "Moneda",
        "Creado (UTC)",
        "Reserva hasta (UTC)",
        "Motivo",
        "Producto",
    ],
    [
        "Pedido",
        "Estado",
        "Telefone",
        "Números",
        "Números devolvidos",
        "Preço por número (unidade mínima)",
        "Total (unidade mínima)",
        "Moeda",
        "Criado (UTC)",
        "Reserva até (UTC)",
        "Motivo",
        "Produto",
    ],
    [
        "Order",
        "State",
        "Phone",
        "Numbers",
        "Numbers given up",
        "Price per number (minor units)",
        "Total (minor units)",
        "Currency",
        "Created (UTC)",
        "Held until (UTC)",
        "Reason",
        "Product",
    ],
];

static NUMBERS: [[&str; 6]; 3] = [
    ["Número", "Estado", "Pedido", "Teléfono", "Creado (UTC)", "Producto"],
    ["Número", "Estado", "Pedido", "Telefone", "Criado (UTC)", "Produto"],
    ["Number", "State", "Order", "Phone", "Created (UTC)", "Product"],
];

/// The first line of a file, in the order of its cells.
#[must_use]
pub fn headings(kind: Kind, language: Language) -> &'static [&'static str] {
    let index = match language {
        Language::Es => 0,
        Language::PtBr => 1,
        Language::En => 2,
    };
    match kind {
        Kind::Orders => &ORDERS[index],
        Kind::Numbers => &NUMBERS[index],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_columns_of_a_file_have_one_name() {
        for kind in Kind::ALL {
            for language in Language::ALL {
                let names = headings(kind, language);
                let unique: std::collections::HashSet<&&str> = names.iter().collect();
                assert_eq!(unique.len(), names.len(), "{} {}", kind.word(), language.tag());
            }
        }
    }
}
