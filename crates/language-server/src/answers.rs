//! Requests about an open text, each answered from it alone.

use serde_json::{Value, json};
use tickwire_language::{
    Declaration, Named, Program, Span, declaration, format, is_name, occurrences, outline, vocabulary,
};

use crate::document::Document;

/// Answers a request about a document; why it cannot be answered.
pub(crate) type Answer = fn(&Document, &str, &Value) -> Result<Value, String>;

/// Who answers a method, if anybody does.
pub(crate) fn of(method: &str) -> Option<Answer> {
    Some(match method {
        "textDocument/formatting" => formatting,
        "textDocument/hover" => hover,
        "textDocument/definition" => definition,
        "textDocument/references" => references,
        "textDocument/documentHighlight" => highlights,
        "textDocument/prepareRename" => prepare_rename,
        "textDocument/rename" => rename,
        "textDocument/documentSymbol" => symbols,
        "textDocument/codeLens" => lenses,
        "textDocument/completion" => completion,
        _ => return None,
    })
}

/// The whole text in its usual form. A text that is wrong stays as it is: what is wrong is shown already.
fn formatting(document: &Document, _: &str, _: &Value) -> Result<Value, String> {
    match format(&document.text) {
        Ok(text) if text != document.text => Ok(json!([{ "range": document.everything(), "newText": text }])),
        _ => Ok(json!([])),
    }
}

/// The name at the request's position.
fn meant(document: &Document, params: &Value) -> Result<Option<Declaration>, String> {
    let at = document.byte(&params["position"])?;
    Ok(declaration(&document.text, at))
}

/// The places that mean the same as the name at the request's position.
fn places(document: &Document, params: &Value) -> Result<Vec<Span>, String> {
    let at = document.byte(&params["position"])?;
    Ok(occurrences(&document.text, at))
}

/// A name's declaration as it is written; of a handler's event, what it costs.
fn hover(document: &Document, _: &str, params: &Value) -> Result<Value, String> {
    let at = document.byte(&params["position"])?;
    let (text, span) = match declaration(&document.text, at) {
        Some(found) => (declared(document, &found), found.span),
        None => {
            let handlers = outline(&document.text).into_iter();
            let mut handlers = handlers.filter(|d| d.named == Named::Handler);
            let Some(handler) = handlers.find(|d| d.whole.from <= at && at <= d.span.to) else {
                return Ok(Value::Null);
            };
            let Some(costs) = costs(document, &handler) else {
                return Ok(Value::Null);
            };
            (costs, handler.span)
        }
    };
    Ok(json!({ "contents": { "kind": "markdown", "value": text }, "range": document.range(span) }))
}

/// A declaration's first lines, and what kind it is.
fn declared(document: &Document, found: &Declaration) -> String {
    const LINES: usize = 12;
    let what = kind(found.named).0;
    if found.named == Named::Local {
        let line = document.text[..found.span.from as usize]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let line = document.text[line..].lines().next().unwrap_or_default().trim();
        return format!("```tickwire\n{line}\n```\n{what}");
    }
    let text = document
        .text
        .get(found.whole.from as usize..found.whole.to as usize);
    let lines: Vec<&str> = text.unwrap_or_default().lines().collect();
    let shown = lines[..lines.len().min(LINES)].join("\n");
    let more = if lines.len() > LINES { "\n…" } else { "" };
    format!("```tickwire\n{shown}{more}\n```\n{what}")
}

/// What a handler does in the worst case; nothing of a text that is wrong.
fn costs(document: &Document, handler: &Declaration) -> Option<String> {
    let program: &Program = document.compiled.as_ref().ok()?;
    let within = |span: Span| handler.whole.from <= span.from && span.from < handler.whole.to;
    let code = program.handlers.iter().find(|code| within(code.span))?;
    let requests = match code.orders {
        0 => "no order request".to_owned(),
        1 => "1 order request".to_owned(),
        n => format!("{n} order requests"),
    };
    Some(format!("at most {} operations, {requests}", code.cost))
}

fn definition(document: &Document, uri: &str, params: &Value) -> Result<Value, String> {
    let found = meant(document, params)?;
    Ok(found.map_or(
        Value::Null,
        |found| json!({ "uri": uri, "range": document.range(found.span) }),
    ))
}

fn references(document: &Document, uri: &str, params: &Value) -> Result<Value, String> {
    let with_own = params["context"]["includeDeclaration"].as_bool().unwrap_or(true);
    let own = meant(document, params)?.map(|found| found.span);
    let places = places(document, params)?;
    let places = places.into_iter().filter(|place| with_own || Some(*place) != own);
    let places = places.map(|place| json!({ "uri": uri, "range": document.range(place) }));
    Ok(Value::Array(places.collect()))
}

fn highlights(document: &Document, _: &str, params: &Value) -> Result<Value, String> {
    let places = places(document, params)?.into_iter();
    Ok(Value::Array(
        places
            .map(|place| json!({ "range": document.range(place) }))
            .collect(),
    ))
}

fn prepare_rename(document: &Document, _: &str, params: &Value) -> Result<Value, String> {
    let at = document.byte(&params["position"])?;
    let places = places(document, params)?;
    let here = places.iter().find(|place| place.from <= at && at <= place.to);
    Ok(here.map_or(Value::Null, |here| document.range(*here)))
}

fn rename(document: &Document, uri: &str, params: &Value) -> Result<Value, String> {
    let new = params["newName"].as_str().ok_or("there is no newName")?;
    if !is_name(new) {
        return Err(format!("'{new}' cannot be a name"));
    }
    let places = places(document, params)?;
    if places.is_empty() {
        return Err("there is no name of this file at that place".to_owned());
    }
    let taken = outline(&document.text).into_iter().find(|d| d.name == new);
    if let Some(taken) = taken {
        let line = document.position(taken.span.from)["line"].as_u64().unwrap_or(0) + 1;
        return Err(format!("'{new}' is {} in line {line}", kind(taken.named).0));
    }
    let edits = places
        .iter()
        .map(|place| json!({ "range": document.range(*place), "newText": new }));
    Ok(json!({ "changes": { uri: edits.collect::<Vec<Value>>() } }))
}

fn symbols(document: &Document, _: &str, _: &Value) -> Result<Value, String> {
    let all = outline(&document.text).into_iter();
    let shown = all.filter(|d| !matches!(d.named, Named::Local | Named::EnumValue));
    let shown = shown.map(|d| {
        let (what, number, _) = kind(d.named);
        // The protocol wants the name within the whole.
        let whole = Span {
            from: d.whole.from.min(d.span.from),
            to: d.whole.to.max(d.span.to),
        };
        json!({
            "name": d.name,
            "detail": what,
            "kind": number,
            "range": document.range(whole),
            "selectionRange": document.range(d.span),
        })
    });
    Ok(Value::Array(shown.collect()))
}

/// What each handler costs, above it.
fn lenses(document: &Document, _: &str, _: &Value) -> Result<Value, String> {
    let handlers = outline(&document.text)
        .into_iter()
        .filter(|d| d.named == Named::Handler);
    let lenses = handlers.filter_map(|handler| {
        let title = costs(document, &handler)?;
        // Without a command: it is only read.
        Some(json!({ "range": document.range(handler.span), "command": { "title": title, "command": "" } }))
    });
    Ok(Value::Array(lenses.collect()))
}

/// Names of the file, those of the language, and its words; the editor picks those that begin alike.
fn completion(document: &Document, _: &str, params: &Value) -> Result<Value, String> {
    let at = document.byte(&params["position"])?;
    let declared = outline(&document.text);
    let is_known = |d: &&Declaration| match d.named {
        Named::Local => d.whole.from <= at && at <= d.whole.to,
        Named::Strategy | Named::Handler | Named::Test => false,
        _ => true,
    };
    let own = declared.iter().filter(is_known).map(|d| {
        let (what, _, number) = kind(d.named);
        json!({ "label": d.name, "detail": what, "kind": number })
    });
    let words = vocabulary().map(|word| json!({ "label": word, "kind": 14 }));
    Ok(Value::Array(own.chain(words).collect()))
}

/// In words; and the numbers of `SymbolKind` and `CompletionItemKind` (specification 3.17).
fn kind(named: Named) -> (&'static str, u8, u8) {
    match named {
        Named::Strategy => ("the strategy", 2, 9),
        Named::Parameter => ("a parameter", 7, 10),
        Named::Constant => ("a constant", 14, 21),
        Named::Enum => ("an enum", 10, 13),
        Named::EnumValue => ("a value of an enum", 22, 20),
        Named::Instrument => ("an instrument", 19, 18),
        Named::State => ("state", 13, 6),
        Named::Window => ("a window", 18, 6),
        Named::Table => ("a table", 20, 6),
        Named::Timer => ("a timer", 24, 23),
        Named::Counter => ("a counter", 16, 6),
        Named::Function => ("a function", 12, 3),
        Named::Handler => ("a handler", 24, 23),
        Named::Test => ("a test", 6, 2),
        Named::Local => ("a local value", 13, 6),
    }
}
