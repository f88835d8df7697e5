//! Whether bytes are the image that they claim to be, and nothing else.
//!
//! Looks at the outer form only: how it begins, that its parts lead exactly to its end. What follows an image's end is
//! what makes one file two things at once. Pictures are not decoded.

use super::{Image, Refusal};
use crate::limits::{UPLOAD_BYTES_MAX, UPLOAD_BYTES_MIN};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// Why bytes are not taken as an image of that kind; none when they are.
#[must_use]
pub fn refusal(image: Image, bytes: &[u8]) -> Option<Refusal> {
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if !(UPLOAD_BYTES_MIN..=UPLOAD_BYTES_MAX).contains(&size) {
        return Some(Refusal::WrongSize);
    }
    let begins = match image {
        Image::Png => bytes.starts_with(PNG) && matches!(bytes.get(12..16), Some(b"IHDR")),
        Image::Jpeg => bytes.starts_with(b"\xff\xd8\xff"),
        Image::Webp => bytes.starts_with(b"RIFF") && matches!(bytes.get(8..12), Some(b"WEBP")),
        Image::Avif => matches!(bytes.get(4..8), Some(b"ftyp")) && matches!(bytes.get(8..12), Some(b"avif" | b"avis")),
    };
    if !begins {
        return Some(Refusal::WrongKind);
    }
    let ends = match image {
        Image::Png => png_ends(bytes),
        Image::Jpeg => jpeg_ends(bytes),
        Image::Webp => little(bytes, 4).is_some_and(|size| size.checked_add(8) == Some(bytes.len())),
        Image::Avif => boxes_end(bytes),
    };
    (!ends).then_some(Refusal::MoreThanAnImage)
}

/// Whether the chunks lead to an IEND at the very end.
fn png_ends(bytes: &[u8]) -> bool {
    let mut at = PNG.len();
    loop {
        let Some(size) = big(bytes, at) else { return false };
        let kind = bytes.get(at + 4..at + 8);
        // Length, kind and checksum have four bytes each.
        let Some(next) = size.checked_add(12).and_then(|size| at.checked_add(size)) else { return false };
        if matches!(kind, Some(b"IEND")) {
            return size == 0 && next == bytes.len();
        }
        at = next;
    }
}

/// Whether the segments, and the scans between them, lead to an end of image at the very end.
fn jpeg_ends(bytes: &[u8]) -> bool {
    let mut at = 2;
    loop {
        match bytes.get(at..at + 2) {
            // Fill bytes may stand before a marker.
            Some([0xff, 0xff]) => at += 1,
            Some([0xff, 0xd9]) => return at + 2 == bytes.len(),
            // A marker with a length, which counts its own two bytes.
            Some([0xff, marker]) if *marker >= 0xc0 => {
                let Some([high, low]) = bytes.get(at + 2..at + 4) else { return false };
                at += 2 + usize::from(u16::from_be_bytes([*high, *low]));
                if *marker == 0xda {
                    at = scan_end(bytes, at);
                }
            }
            _ => return false,
        }
    }
}

/// Where the coded picture of a scan ends: at the next marker that is neither a byte FF of its own nor a restart.
fn scan_end(bytes: &[u8], begin: usize) -> usize {
    let rest = bytes.get(begin..).unwrap_or_default();
    let is_marker = |pair: &[u8]| pair[0] == 0xff && !matches!(pair[1], 0x00 | 0xd0..=0xd7);
    begin + rest.windows(2).position(is_marker).unwrap_or(rest.len())
}

/// Whether the boxes of an ISO file lead to its very end.
fn boxes_end(bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        // 0 and 1 stand for "to the end" and for sizes of eight bytes: images of ours need neither.
        match big(bytes, at).filter(|size| *size >= 8).and_then(|size| at.checked_add(size)) {
            Some(next) => at = next,
            None => return false,
        }
    }
    at == bytes.len()
}

fn four(bytes: &[u8], at: usize) -> Option<[u8; 4]> {
    bytes.get(at..at.checked_add(4)?)?.try_into().ok()
}

fn big(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(four(bytes, at)?)).ok()
}

fn little(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(four(bytes, at)?)).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn png() -> Vec<u8> {
        let mut bytes = PNG.to_vec();
        bytes.extend(b"\x00\x00\x00\x0dIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89");
        bytes.extend(b"\x00\x00\x00\x0aIDAT\x78\x9c\x63\x00\x01\x00\x00\x05\x00\x01\x0d\x0a\x2d\xb4");
        bytes.extend(b"\x00\x00\x00\x00IEND\xae\x42\x60\x82");
        bytes
    }

    fn jpeg() -> Vec<u8> {
        let head = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00";
        let scan = b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00coded\xff\x00coded\xff\xd0coded";
        [&head[..], scan, &[0; 40], b"\xff\xd9"].concat()
    }

    fn webp() -> Vec<u8> {
        let rest = [&b"WEBPVP8L"[..], &60_u32.to_le_bytes(), &[0; 60]].concat();
        [&b"RIFF"[..], &u32::try_from(rest.len()).unwrap().to_le_bytes(), &rest].concat()
    }

    fn avif() -> Vec<u8> {
        [&b"\x00\x00\x00\x14ftypavif\x00\x00\x00\x00mif1\x00\x00\x00\x40mdat"[..], &[0; 56]].concat()
    }

    fn each() -> [(Image, Vec<u8>); 4] {
        [(Image::Png, png()), (Image::Jpeg, jpeg()), (Image::Webp, webp()), (Image::Avif, avif())]
    }

    #[test]
    fn an_image_is_taken_as_what_it_is_and_as_nothing_else() {
        for (kind, bytes) in each() {
            for image in Image::ALL {
                let wanted = (image != kind).then_some(Refusal::WrongKind);
                assert_eq!(refusal(image, &bytes), wanted, "{kind:?} as {image:?}");
            }
        }
    }

    #[test]
    fn what_stands_behind_the_end_is_seen() {
        for (kind, bytes) in each() {
            for more in
                [&b"<script>alert(1)</script>"[..], b"PK\x03\x04", b"\x00", b"<script>alert(1)</script>\xff\xd9"]
            {
                let both = [&bytes, more].concat();
                assert_eq!(refusal(kind, &both), Some(Refusal::MoreThanAnImage), "{kind:?}");
            }
            assert_eq!(refusal(kind, &bytes[..bytes.len() - 1]), Some(Refusal::MoreThanAnImage), "{kind:?} is cut");
        }
    }

    #[test]
    fn pages_and_drawings_are_no_images_whatever_they_are_called() {
        let page = b"<!doctype html><html><body><script>alert(document.domain)</script></body></html>".to_vec();
        let drawing = b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"><circle r=\"9\"/></svg>".to_vec();
        let gif = [&b"GIF89a/*"[..], &[b' '; 80], b"*/=1;alert(1)"].concat();
        for bytes in [page, drawing, gif] {
            for image in Image::ALL {
                assert_eq!(refusal(image, &bytes), Some(Refusal::WrongKind), "{image:?}");
            }
        }
        assert_eq!(refusal(Image::Png, b""), Some(Refusal::WrongSize));
        let large = vec![0; usize::try_from(UPLOAD_BYTES_MAX).unwrap() + 1];
        assert_eq!(refusal(Image::Png, &large), Some(Refusal::WrongSize));
    }

    proptest! {
        #[test]
        fn no_bytes_lead_astray(tail in proptest::collection::vec(any::<u8>(), 0..300)) {
            for (kind, bytes) in each() {
                // Ends in an answer, whatever the sizes inside say.
                let begun = [&bytes[..16], &tail].concat();
                prop_assert!(Image::ALL.iter().filter(|image| **image != kind).all(|image| refusal(*image, &begun).is_some()));
                let _ = refusal(kind, &begun);
            }
        }
    }
}
