//! A Pix code: the text of a "BR Code" (EMV merchant-presented mode), with a true checksum and nobody's account.

/// A picture for a QR code: one white pixel. Whoever pays here uses the page, not a bank's app.
pub(super) const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==";

/// The code to copy for a payment of an amount.
pub(super) fn code(id: &str, amount_minor: i64) -> String {
    let account = format!("{}{}", field("00", "br.gov.bcb.pix"), field("25", &format!("pix.example.com/{id}")));
    let amount = format!("{}.{:02}", amount_minor / 100, amount_minor % 100);
    let fields = [
        field("00", "01"),
        field("26", &account),
        field("52", "0000"),
        field("53", "986"),
        field("54", &amount),
        field("58", "BR"),
        field("59", "TIRADA"),
        field("60", "SAO PAULO"),
        field("62", &field("05", "***")),
    ];
    let text = format!("{}6304", fields.concat());
    format!("{text}{:04X}", crc16(text.as_bytes()))
}

fn field(id: &str, value: &str) -> String {
    format!("{id}{:02}{value}", value.len())
}

/// CRC-16/IBM-3740, also known as CCITT-FALSE.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0xffff, |crc, byte| {
        (0..8).fold(
            crc ^ (u16::from(*byte) << 8),
            |crc, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_lengths_and_a_checksum() {
        assert_eq!(crc16(b"123456789"), 0x29b1, "the check value of the algorithm's catalogue");
        let code = code("17", 1_050);
        assert!(code.starts_with("00020126") && code.contains("540510.50") && code.contains("5802BR"), "{code}");
        let (text, sum) = code.split_at(code.len() - 4);
        assert_eq!(sum, format!("{:04X}", crc16(text.as_bytes())));
    }
}
