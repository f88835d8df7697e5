//! Images that staff upload: which kinds, where they lie, and whether bytes are what they claim to be.
//!
//! Pictures made of instructions, SVG first of all, are no kind of ours.

mod check;

use uuid::Uuid;

pub use check::refusal;

/// A kind of image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Image {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
    /// WebP.
    Webp,
    /// AVIF.
    Avif,
}

impl Image {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Png, Self::Jpeg, Self::Webp, Self::Avif];

    /// Its media type, in the database and in JSON.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Avif => "image/avif",
        }
    }

    /// The kind of a media type.
    #[must_use]
    pub fn from_media_type(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|image| image.media_type() == text)
    }

    const fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Webp => "webp",
            Self::Avif => "avif",
        }
    }
}

/// Where an upload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// For its bytes, or for somebody who looks at them.
    Waiting,
    /// It is an image, and public.
    Accepted,
    /// It is not what it claimed to be, and gone.
    Rejected,
    /// Nothing came in time.
    Expired,
}

impl State {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Waiting, Self::Accepted, Self::Rejected, Self::Expired];

    /// The word used in the database and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }

    /// The state with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }
}

/// Why bytes are not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Fewer or more bytes than allowed.
    WrongSize,
    /// Not an image of the kind that was named.
    WrongKind,
    /// An image with something behind its end.
    MoreThanAnImage,
    /// More pixels than allowed.
    TooManyPixels,
}

impl Refusal {
    /// Every refusal.
    pub const ALL: [Self; 4] = [Self::WrongSize, Self::WrongKind, Self::MoreThanAnImage, Self::TooManyPixels];

    /// The word used in the database and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::WrongSize => "wrong-size",
            Self::WrongKind => "wrong-kind",
            Self::MoreThanAnImage => "more-than-an-image",
            Self::TooManyPixels => "too-many-pixels",
        }
    }

    /// The refusal with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.word() == word)
    }
}

/// Where the bytes of an upload lie until somebody has looked at them. Nobody outside can read them there.
#[must_use]
pub fn quarantine_key(tenant_id: Uuid, id: Uuid) -> String {
    format!("quarantine/{tenant_id}/{id}")
}

/// The store and the upload of such a key; none for any other key.
#[must_use]
pub fn from_quarantine_key(key: &str) -> Option<(Uuid, Uuid)> {
    let (tenant_id, id) = key.strip_prefix("quarantine/")?.split_once('/')?;
    let (tenant_id, id) = (Uuid::try_parse(tenant_id).ok()?, Uuid::try_parse(id).ok()?);
    (quarantine_key(tenant_id, id) == key).then_some((tenant_id, id))
}

/// Where an accepted image lies, and its path at the origin that serves images.
#[must_use]
pub fn public_key(tenant_id: Uuid, id: Uuid, image: Image) -> String {
    format!("public/{tenant_id}/{id}.{}", image.extension())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_lead_back_and_nothing_active_is_a_kind() {
        assert!(Image::ALL.iter().all(|image| Image::from_media_type(image.media_type()) == Some(*image)));
        assert!(State::ALL.iter().all(|state| State::from_word(state.word()) == Some(*state)));
        assert!(Refusal::ALL.iter().all(|refusal| Refusal::from_word(refusal.word()) == Some(*refusal)));
        for bad in ["image/svg+xml", "text/html", "image/png; charset=x", "IMAGE/PNG", "", "image/*", "image/gif"] {
            assert_eq!(Image::from_media_type(bad), None, "{bad}");
        }
    }

    #[test]
    fn only_our_own_keys_are_read() {
        let (tenant_id, id) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let key = quarantine_key(tenant_id, id);
        assert_eq!(from_quarantine_key(&key), Some((tenant_id, id)));
        let plain = format!("quarantine/{}/{id}", tenant_id.simple());
        for bad in
            ["", "quarantine/", "quarantine/a/b", &key[1..], &format!("{key}/x"), &format!("public/{id}"), &plain]
        {
            assert_eq!(from_quarantine_key(bad), None, "{bad}");
        }
    }
}
