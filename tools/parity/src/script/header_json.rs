//! What a JSON header may look like, and what closes the connection.

use super::Theme;
use super::build::header;
use crate::frame::{Codec, Frame};

/// The members of a request that is answered with code 22.
const ASK: &str = r#""code":101,"extFields":{"namespace":"none","key":"k"}"#;

/// Everything after the members above.
const REST: &str = r#""flag":0,"language":"JAVA","opaque":@opaque@,"version":479"#;

fn text(theme: &mut Theme, id: &str, text: &str) {
    theme.ask(id, Frame::with_header_text(text));
}

pub(super) fn theme() -> Theme {
    let mut theme = Theme::new("header-json");
    peers(&mut theme);
    layout(&mut theme);
    leniency(&mut theme);
    numbers(&mut theme);
    missing(&mut theme);
    ext_values(&mut theme);
    languages(&mut theme);
    not_json(&mut theme);
    encodings(&mut theme);
    theme
}

/// The forms real peers write.
fn peers(theme: &mut Theme) {
    text(theme, "java", &header(ASK));
    text(
        theme,
        "go",
        r#"{"code":101,"language":"GO","version":317,"opaque":@opaque@,"flag":0,"remark":"","extFields":{"namespace":"none","key":"k"}}"#,
    );
    text(
        theme,
        "cpp",
        "{\"code\":101,\"extFields\":{\"AccessKey\":\"\",\"OnsChannel\":\"\",\"Signature\":\"\",\"key\":\"k\",\"namespace\":\"none\"},\"flag\":0,\"language\":\"CPP\",\"opaque\":@opaque@,\"remark\":\"\",\"version\":333}\n",
    );
    text(
        theme,
        "go-empty-ext",
        r#"{"code":106,"language":"GO","version":317,"opaque":@opaque@,"flag":0,"remark":"","extFields":{}}"#,
    );
    text(
        theme,
        "type-name-ignored",
        &header(&format!("{ASK},\"serializeTypeCurrentRPC\":\"ROCKETMQ\"")),
    );
}

fn layout(theme: &mut Theme) {
    text(
        theme,
        "keys-reversed",
        r#"{"version":479,"opaque":@opaque@,"language":"JAVA","flag":0,"extFields":{"key":"k","namespace":"none"},"code":101}"#,
    );
    text(
        theme,
        "blanks-everywhere",
        &format!(
            " \t\r\n{{ {} , {} }} ",
            ASK.replace(':', " : "),
            REST.replace(',', "\n,\t")
        ),
    );
    text(theme, "trailing-newline", &format!("{}\n", header(ASK)));
    text(
        theme,
        "trailing-blanks",
        &format!("{}   \r\n\t", header(ASK)),
    );
    text(theme, "trailing-nul", &format!("{}\0", header(ASK)));
    text(
        theme,
        "unknown-keys",
        &header(&format!("\"x\":1,\"y\":{{\"z\":[1,{{}},null]}},{ASK}")),
    );
    let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
    text(
        theme,
        "unknown-key-100-deep",
        &header(&format!("\"x\":{deep},{ASK}")),
    );
    text(
        theme,
        "duplicate-code",
        &header(&format!("\"code\":9999,{ASK}")),
    );
    text(
        theme,
        "duplicate-ext-field",
        &header(r#""code":101,"extFields":{"namespace":"first","key":"k","namespace":"last"}"#),
    );
    text(
        theme,
        "duplicate-ext-map",
        &header(
            r#""code":101,"extFields":{"namespace":"first","key":"a"},"extFields":{"namespace":"last"}"#,
        ),
    );
    text(
        theme,
        "escaped-key",
        &header(r#""\u0063ode":101,"extFields":{"namesp\u0061ce":"none","key":"k"}"#),
    );
    text(
        theme,
        "escaped-slash",
        &header(r#""code":101,"extFields":{"namespace":"a\/b","key":"\u4e2d"}"#),
    );
    text(
        theme,
        "member-body-text",
        &header(&format!("\"body\":\"text\",{ASK}")),
    );
    text(
        theme,
        "member-suspended",
        &header(&format!("\"suspended\":true,{ASK}")),
    );
}

/// Forms that are not JSON but were always read.
fn leniency(theme: &mut Theme) {
    text(theme, "single-quotes", &header(ASK).replace('"', "'"));
    text(
        theme,
        "unquoted-keys",
        &header(r#"code:101,extFields:{namespace:"none",key:"k"}"#),
    );
    text(theme, "comma-before-brace", &format!("{{{ASK},{REST},}}"));
    text(theme, "double-comma", &format!("{{{ASK},,{REST}}}"));
    text(theme, "leading-comma", &format!("{{,{ASK},{REST}}}"));
    text(theme, "missing-comma", &format!("{{{ASK} {REST}}}"));
    text(theme, "block-comment", &format!("/* c */{{{ASK},{REST}}}"));
    text(theme, "comment-inside", &format!("{{{ASK},/* c */{REST}}}"));
    text(theme, "line-comment", &format!("// c\n{{{ASK},{REST}}}"));
    text(
        theme,
        "byte-order-mark",
        &format!("\u{feff}{}", header(ASK)),
    );
    text(
        theme,
        "at-type",
        &header(&format!("\"@type\":\"java.lang.Object\",{ASK}")),
    );
    text(
        theme,
        "upper-case-key",
        &header(r#""Code":101,"extFields":{"namespace":"none","key":"k"}"#),
    );
    text(
        theme,
        "underscored-key",
        &header(r#""code":101,"ext_fields":{"namespace":"none","key":"k"}"#),
    );
    text(
        theme,
        "raw-tab-in-text",
        &header("\"code\":101,\"extFields\":{\"namespace\":\"a\tb\",\"key\":\"k\"}"),
    );
    text(
        theme,
        "odd-escapes",
        &header(r#""code":101,"extFields":{"namespace":"\'\v\x41","key":"k"}"#),
    );
}

fn numbers(theme: &mut Theme) {
    let code = |value: &str| {
        header(&format!(
            "\"code\":{value},\"extFields\":{{\"namespace\":\"none\",\"key\":\"k\"}}"
        ))
    };
    for (id, value) in [
        ("code-as-text", "\"101\""),
        ("code-as-decimal", "101.0"),
        ("code-as-exponent", "1.01e2"),
        ("code-zero-padded", "0101"),
        ("code-with-plus", "+101"),
        ("code-trailing-point", "101."),
        ("code-with-l", "101L"),
        ("code-true", "true"),
        ("code-null", "null"),
        ("code-empty-text", "\"\""),
        ("code-text", "\"abc\""),
        ("code-object", "{}"),
        ("code-list", "[101]"),
        ("code-nan", "NaN"),
        ("code-undefined", "undefined"),
        ("code-above-int", "4294967397"),
        ("code-int-max-plus-1", "2147483648"),
        ("code-2-to-32", "4294967296"),
        ("code-above-int-as-text", "\"4294967397\""),
        ("code-above-long", "18446744073709551717"),
        ("code-negative", "-101"),
    ] {
        text(theme, id, &code(value));
    }
    text(
        theme,
        "code-above-int-last",
        &format!(
            "{{{REST},\"extFields\":{{\"namespace\":\"none\",\"key\":\"k\"}},\"code\":4294967397}}"
        ),
    );
    let with = |key: &str, value: &str| format!("{{{ASK},\"opaque\":@opaque@,\"{key}\":{value}}}");
    for (id, key, value) in [
        ("version-as-text", "version", "\"479\""),
        ("version-null", "version", "null"),
        ("version-above-int", "version", "4294967775"),
        ("version-text", "version", "\"x\""),
        ("version-list", "version", "[]"),
        ("flag-as-text", "flag", "\"0\""),
        ("flag-null", "flag", "null"),
        ("flag-above-int", "flag", "4294967296"),
        ("flag-text", "flag", "\"oneway\""),
    ] {
        text(theme, id, &with(key, value));
    }
    text(
        theme,
        "opaque-as-text",
        &header(ASK).replace("@opaque@", "\"@opaque@\""),
    );
    text(
        theme,
        "opaque-above-int",
        &header(ASK).replace("@opaque@", "4294967296"),
    );
    text(
        theme,
        "opaque-object",
        &header(ASK).replace("@opaque@", "{}"),
    );
}

fn missing(theme: &mut Theme) {
    text(theme, "empty-object", "{}");
    text(theme, "no-code", &format!("{{{REST}}}"));
    text(theme, "only-code", r#"{"code":106}"#);
    text(
        theme,
        "no-opaque",
        &header(ASK).replace("\"opaque\":@opaque@,", ""),
    );
    text(
        theme,
        "opaque-null",
        &header(ASK).replace("@opaque@", "null"),
    );
    text(
        theme,
        "no-version",
        &format!("{{{ASK},\"opaque\":@opaque@}}"),
    );
    text(
        theme,
        "no-language",
        &format!("{{{ASK},\"flag\":0,\"opaque\":@opaque@,\"version\":479}}"),
    );
    text(
        theme,
        "ext-null",
        &header("\"code\":101,\"extFields\":null"),
    );
    text(theme, "ext-empty", &header("\"code\":101,\"extFields\":{}"));
    text(theme, "ext-absent", &header("\"code\":101"));
    text(
        theme,
        "remark-null",
        &header(&format!("{ASK},\"remark\":null")),
    );
    text(
        theme,
        "remark-text",
        &header(&format!("{ASK},\"remark\":\"hello\"")),
    );
    text(
        theme,
        "remark-number",
        &header(&format!("{ASK},\"remark\":5")),
    );
}

fn ext_values(theme: &mut Theme) {
    let with = |value: &str| {
        header(&format!(
            "\"code\":101,\"extFields\":{{\"namespace\":{value},\"key\":\"k\"}}"
        ))
    };
    for (id, value) in [
        ("ext-value-number", "12"),
        ("ext-value-decimal", "1.50"),
        ("ext-value-negative", "-3"),
        ("ext-value-true", "true"),
        ("ext-value-null", "null"),
        ("ext-value-object", "{\"a\":1}"),
        ("ext-value-list", "[1,2]"),
        ("ext-value-empty", "\"\""),
        ("ext-value-quotes", "\"a\\\"b\\\\c\""),
        (
            "ext-value-controls",
            "\"\\u0001\\b\\t\\n\\f\\r\\u000b\\u007f\"",
        ),
        ("ext-value-non-ascii", "\"中é😀\""),
        ("ext-value-separators", "\"\u{2028}\u{2029}\u{85}\""),
        ("ext-value-markup", "\"<'&>/\""),
        ("ext-value-surrogates", "\"\\uD83D\\uDE00\""),
        ("ext-value-lone-surrogate", "\"a\\uD800b\""),
    ] {
        text(theme, id, &with(value));
    }
    text(
        theme,
        "ext-value-long",
        &with(&format!("\"{}\"", "n".repeat(600))),
    );
    text(theme, "ext-list", &header("\"code\":101,\"extFields\":[]"));
    text(
        theme,
        "ext-text",
        &header("\"code\":101,\"extFields\":\"x\""),
    );
    text(theme, "ext-number", &header("\"code\":101,\"extFields\":5"));
    let many: Vec<String> = (0..1000)
        .map(|number| format!("\"f{number}\":\"v\""))
        .collect();
    text(
        theme,
        "ext-1000-fields",
        &header(&format!(
            "\"code\":101,\"extFields\":{{{},\"namespace\":\"none\",\"key\":\"k\"}}",
            many.join(",")
        )),
    );
}

fn languages(theme: &mut Theme) {
    let with = |language: &str| {
        format!("{{{ASK},\"flag\":0,\"opaque\":@opaque@,\"version\":479,\"language\":{language}}}")
    };
    for language in ["CPP", "GO", "RUST", "NODE_JS", "OTHER"] {
        text(
            theme,
            &format!("language-{language}"),
            &with(&format!("\"{language}\"")),
        );
    }
    for (id, language) in [
        ("language-unknown", "\"COBOL\""),
        ("language-empty", "\"\""),
        ("language-null", "null"),
        ("language-ordinal", "9"),
        ("language-ordinal-out-of-range", "99"),
        ("language-object", "{}"),
        ("language-lower-case", "\"java\""),
    ] {
        text(theme, id, &with(language));
    }
}

fn not_json(theme: &mut Theme) {
    let good = header(ASK);
    for (id, header) in [
        ("not-json-text", "hello".to_owned()),
        ("not-json-list", "[]".to_owned()),
        ("not-json-list-of-one", format!("[{good}]")),
        ("not-json-null", "null".to_owned()),
        ("not-json-number", "101".to_owned()),
        ("not-json-string", "\"code\"".to_owned()),
        ("not-json-blanks", "    ".to_owned()),
        ("not-json-cut", good[..good.len() - 1].to_owned()),
        ("not-json-cut-in-text", good[..30].to_owned()),
        ("not-json-text-after", format!("{good}x")),
        ("not-json-two-objects", format!("{good}{good}")),
        ("not-json-comma-after", format!("{good},")),
        ("not-json-colon-missing", good.replacen(':', " ", 1)),
        ("not-json-bad-escape", good.replacen("none", "\\u12", 1)),
    ] {
        text(theme, id, &header);
    }
}

fn encodings(theme: &mut Theme) {
    let around = |bytes: &[u8]| {
        let header = header(ASK);
        let (front, back) = header.split_once("none").expect("the members hold it");
        Frame::with_header_bytes(
            Codec::Json,
            [front.as_bytes(), bytes, back.as_bytes()].concat(),
        )
    };
    theme.ask("utf8-cut-sequence", around(b"a\xC3"));
    theme.ask("utf8-lone-continuation", around(b"a\x80b"));
    theme.ask("utf8-overlong", around(b"a\xC0\xAFb"));
    theme.ask("utf8-surrogate", around(b"a\xED\xA0\x80b"));
    theme.ask("utf8-ff", around(b"\xFF"));
    theme.ask(
        "utf16-header",
        Frame::with_header_bytes(
            Codec::Json,
            header(ASK).bytes().flat_map(|byte| [0, byte]).collect(),
        ),
    );
}
