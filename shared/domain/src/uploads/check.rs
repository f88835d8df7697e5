//! Whether bytes are the image that they claim to be, and nothing else.
//!
//! Looks at the outer form: how it begins, that its parts lead exactly to its end, and how large it says that its picture
//! is. What follows an image's end is what makes one file two things at once; a picture of very many pixels fits into few
//! bytes, and takes the memory of everybody who looks at it. Pictures are not decoded.

use super::{Image, Refusal};
use crate::limits::{UPLOAD_BYTES_MAX, UPLOAD_BYTES_MIN, UPLOAD_PIXELS_MAX};

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
        Image::Webp => bytes.starts_with(b"RIFF") && matches!(bytes.get(8..12), Some(b"WEBP")) && webp_begins(bytes),
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
    if !ends {
        return Some(Refusal::MoreThanAnImage);
    }
    match pixels(bytes) {
        None | Some(0) => Some(Refusal::WrongKind),
        Some(pixels) => (pixels > UPLOAD_PIXELS_MAX).then_some(Refusal::TooManyPixels),
    }
}

/// Of the picture, as its header says.
fn pixels(bytes: &[u8]) -> Option<u64> {
    let size = imagesize::blob_size(bytes).ok()?;
    let side = |pixels| u64::try_from(pixels).unwrap_or(u64::MAX);
    Some(side(size.width).saturating_mul(side(size.height)))
}

/// Whether the first chunk is one of a picture, by the signature inside: whatever else was called so would be taken.
fn webp_begins(bytes: &[u8]) -> bool {
    match bytes.get(12..16) {
        Some(b"VP8 ") => matches!(bytes.get(23..26), Some(b"\x9d\x01\x2a")),
        Some(b"VP8L") => bytes.get(20) == Some(&0x2f),
        Some(b"VP8X") => true,
        _ => false,
    }
}

/// Whether the chunks, a picture among them, lead to an IEND at the very end.
fn png_ends(bytes: &[u8]) -> bool {
    let (mut at, mut has_picture) = (PNG.len(), false);
    loop {
        let Some(size) = big(bytes, at) else { return false };
        let kind = bytes.get(at + 4..at + 8);
        // Length, kind and checksum have four bytes each.
        let Some(next) = size.checked_add(12).and_then(|size| at.checked_add(size)) else { return false };
        match kind {
            Some(b"IEND") => return has_picture && size == 0 && next == bytes.len(),
            Some(b"IDAT") => has_picture = true,
            _ => {}
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

    fn png(width: u16, height: u16) -> Vec<u8> {
        let side = |pixels: u16| u32::from(pixels).to_be_bytes();
        let head = b"\x00\x00\x00\x0dIHDR";
        let data = b"\x08\x06\x00\x00\x00crc.\x00\x00\x00\x0aIDAT\x78\x9c\x63\x00\x01\x00\x00\x05\x00\x01crc.";
        [PNG, head, &side(width), &side(height), data, b"\x00\x00\x00\x00IEND\xae\x42\x60\x82"].concat()
    }

    fn jpeg(width: u16, height: u16) -> Vec<u8> {
        let head = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00\xff\xc0\x00\x0b\x08";
        let scan = b"\x01\x01\x11\x00\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00coded\xff\x00coded\xff\xd0coded";
        [&head[..], &height.to_be_bytes(), &width.to_be_bytes(), scan, &[0; 40], b"\xff\xd9"].concat()
    }

    fn webp(width: u16, height: u16) -> Vec<u8> {
        let sides = u32::from(width - 1) | u32::from(height - 1) << 14;
        let data = [&b"\x2f"[..], &sides.to_le_bytes(), &[0; 55]].concat();
        let rest = [&b"WEBPVP8L"[..], &60_u32.to_le_bytes(), &data].concat();
        [&b"RIFF"[..], &u32::try_from(rest.len()).unwrap().to_le_bytes(), &rest].concat()
    }

    fn avif(width: u16, height: u16) -> Vec<u8> {
        let part = |name: &[u8; 4], inside: &[u8]| {
            [&u32::try_from(inside.len() + 8).unwrap().to_be_bytes(), &name[..], inside].concat()
        };
        let side = |pixels: u16| u32::from(pixels).to_be_bytes();
        let sides = part(b"ispe", &[&[0; 4][..], &side(width), &side(height)].concat());
        let properties = part(b"iprp", &part(b"ipco", &sides));
        let about = part(b"meta", &[&[0; 4][..], &properties].concat());
        [part(b"ftyp", b"avif\x00\x00\x00\x00mif1"), about, part(b"mdat", &[0; 56])].concat()
    }

    fn each_of(width: u16, height: u16) -> [(Image, Vec<u8>); 4] {
        [
            (Image::Png, png(width, height)),
            (Image::Jpeg, jpeg(width, height)),
            (Image::Webp, webp(width, height)),
            (Image::Avif, avif(width, height)),
        ]
    }

    fn each() -> [(Image, Vec<u8>); 4] {
        each_of(3, 2)
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
    fn a_picture_has_pixels_and_not_more_than_allowed() {
        for (width, height, wanted) in [
            (5_000, 5_000, None),
            (1, 16_384, None),
            (5_000, 5_001, Some(Refusal::TooManyPixels)),
            (16_384, 16_384, Some(Refusal::TooManyPixels)),
        ] {
            for (kind, bytes) in each_of(width, height) {
                assert_eq!(refusal(kind, &bytes), wanted, "{kind:?} of {width} x {height}");
            }
        }
        for bytes in [png(0, 9), png(9, 0), jpeg(0, 9), avif(0, 0)] {
            let kind = Image::ALL.into_iter().find(|kind| refusal(*kind, &bytes) != Some(Refusal::WrongKind));
            assert_eq!(kind, None, "a picture without pixels");
        }
        let headless = [&b"\x00\x00\x00\x14ftypavif\x00\x00\x00\x00mif1\x00\x00\x00\x40mdat"[..], &[0; 56]].concat();
        assert_eq!(refusal(Image::Avif, &headless), Some(Refusal::WrongKind), "it does not say how large it is");
    }

    #[test]
    fn pages_and_drawings_are_no_images_whatever_they_are_called() {
        let page = b"<!doctype html><html><body><script>alert(document.domain)</script></body></html>".to_vec();
        let drawing = b"<svg xmlns=\"http://www.w3.org/2000/svg\" onload=\"alert(1)\"><circle r=\"9\"/></svg>".to_vec();
        let gif = [&b"GIF89a/*"[..], &[b' '; 80], b"*/=1;alert(1)"].concat();
        let riff =
            |kind: &[u8; 4]| [&b"RIFF\x58\x00\x00\x00WEBP"[..], &kind[..], b"\x4c\x00\x00\x00", &[b'<'; 76]].concat();
        for bytes in [page, drawing, gif, riff(b"VP8 "), riff(b"VP8L"), riff(b"html")] {
            for image in Image::ALL {
                assert_eq!(refusal(image, &bytes), Some(Refusal::WrongKind), "{image:?}");
            }
        }
        let hollow =
            [PNG, &png(3, 2)[PNG.len()..33], &[0; 3], b"\x20html", &[b'<'; 36], b"\0\0\0\0IEND\xae\x42\x60\x82"];
        assert_eq!(refusal(Image::Png, &hollow.concat()), Some(Refusal::MoreThanAnImage), "there is no picture in it");
        assert_eq!(refusal(Image::Png, b""), Some(Refusal::WrongSize));
        let large = vec![0; usize::try_from(UPLOAD_BYTES_MAX).unwrap() + 1];
        assert_eq!(refusal(Image::Png, &large), Some(Refusal::WrongSize));
    }

    proptest! {
        #[test]
        fn no_bytes_lead_astray(
            tail in proptest::collection::vec(any::<u8>(), 0..300),
            flips in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
        ) {
            for (kind, bytes) in each() {
                let mut mangled = bytes.clone();
                for (at, byte) in &flips {
                    mangled[at % bytes.len()] = *byte;
                }
                let _ = (refusal(kind, &mangled), pixels(&mangled));
                // Ends in an answer, whatever the sizes inside say.
                let begun = [&bytes[..16], &tail].concat();
                prop_assert!(Image::ALL.iter().filter(|image| **image != kind).all(|image| refusal(*image, &begun).is_some()));
                let _ = (refusal(kind, &begun), pixels(&begun));
            }
        }
    }
}
