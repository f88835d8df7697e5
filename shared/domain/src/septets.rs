//! Spelling for phones: a text in characters of one septet each (GSM 03.38) is one message up to 160 of them. A single
//! other character makes it cost twice as much.

/// The rest of GSM 03.38, beside letters and digits of ASCII: what costs one septet.
const CHEAP: &str = " .,:;!?¿¡'\"()-+*/=<>&@#%$_éèàùìòñÑäÄöÖüÜÉÇåÅæÆøØß";

/// A text in characters that cost one septet; what has no likeness there is left out.
pub(crate) fn spelled(text: &str) -> String {
    text.chars().filter_map(cheap).collect()
}

fn cheap(c: char) -> Option<char> {
    Some(match c {
        'á' | 'â' | 'ã' | 'ª' => 'a',
        'Á' | 'À' | 'Â' | 'Ã' => 'A',
        'ê' | 'ë' => 'e',
        'È' | 'Ê' | 'Ë' => 'E',
        'í' | 'î' | 'ï' => 'i',
        'Í' | 'Ì' | 'Î' | 'Ï' => 'I',
        'ó' | 'ô' | 'õ' | 'º' => 'o',
        'Ó' | 'Ò' | 'Ô' | 'Õ' => 'O',
        'ú' | 'û' => 'u',
        'Ú' | 'Ù' | 'Û' => 'U',
        'ç' => 'c',
        '’' | '‘' => '\'',
        '“' | '”' => '"',
        '–' | '—' => '-',
        c if c.is_ascii_alphanumeric() || CHEAP.contains(c) => c,
        _ => return None,
    })
}
