// A form for a message, beside the same message as JSON: a change of one changes the other.
import { h, text } from "./dom.js";
import type { Converter } from "./message.js";
import type { ProtoForm, TypeForm } from "./types.js";

type Fields = Record<string, unknown>;

/** The most fields for which there are inputs; JSON is better for larger messages. */
const maxInputs = 60;

/** MessageForm is the form of one message. */
export class MessageForm {
  readonly element: HTMLElement;
  private value: unknown;
  private readonly inputs = h("div", { class: "inputs" });
  private readonly json = h("textarea", { "aria-label": "The message as JSON", spellcheck: "false", rows: 6, input: () => this.typed() });
  private readonly wrong = h("p", { class: "wrong", role: "status" });
  private count = 0;
  /** valid reports whether the message can be sent. Otherwise the form says why not. */
  valid = true;

  constructor(private readonly convert: Converter, private readonly type: TypeForm) {
    this.value = convert.zero(type, true);
    this.element = h("div", { class: "message" }, this.inputs, this.json, this.wrong);
    this.build();
    this.write();
  }

  /** message returns the message as JSON, or throws an Error. */
  message(): unknown {
    return JSON.parse(this.json.value);
  }

  /** typed takes the JSON that was typed. */
  private typed(): void {
    try {
      this.value = this.message();
      this.build();
    } catch { /* check says it */ }
    this.check();
  }

  /** write shows the message as JSON. */
  private write(): void {
    this.json.value = JSON.stringify(this.value, undefined, 2);
    this.json.rows = Math.min(Math.max(this.json.value.split("\n").length, 3), 16);
    this.check();
  }

  private check(): void {
    let why = "";
    try {
      this.convert.parse(this.type, this.message());
    } catch (e) {
      why = e instanceof SyntaxError ? `This is no JSON: ${e.message}` : (e as Error).message;
    }
    text(this.wrong, why);
    this.valid = why === "";
  }

  private build(): void {
    this.count = 0;
    this.inputs.replaceChildren(...this.struct(this.type, this.value as Fields));
  }

  /** struct returns the rows of a struct's fields. */
  private struct(t: TypeForm, of: Fields): HTMLElement[] {
    const done = new Set<string>();
    return this.convert.fields(t).flatMap(({ name, type, proto }) => {
      if (proto?.oneof) {
        if (done.has(proto.oneof)) return [];
        done.add(proto.oneof);
        return this.oneof(t, proto.oneof, of);
      }
      if (this.count++ >= maxInputs) return [];
      return this.field(name, type, proto, of);
    });
  }

  private field(name: string, type: TypeForm, proto: ProtoForm | undefined, of: Fields): HTMLElement[] {
    if (type.kind !== "struct" && type.kind !== "proto") return [row(name, type.text, this.control(name, type, proto, of))];
    if (type.kind === "struct") return [h("fieldset", {}, h("legend", {}, name), ...this.struct(type, (of[name] ??= this.convert.zero(type)) as Fields))];
    const set = h("input", { type: "checkbox", "aria-label": `set ${name}`, change: () => { of[name] = set.checked ? this.convert.zero(type, true) : null; this.build(); this.write(); } });
    set.checked = (of[name] ?? null) !== null;
    return [h("fieldset", {}, h("legend", {}, h("label", {}, set, " ", name)), ...(set.checked ? this.struct(type, of[name] as Fields) : []))];
  }

  /** oneof returns a choice of a message's fields, and the chosen one. */
  private oneof(t: TypeForm, oneof: string, of: Fields): HTMLElement[] {
    const members = this.convert.fields(t).filter((f) => f.proto?.oneof === oneof);
    const chosen = members.find((f) => (of[f.name] ?? null) !== null);
    const choice = h("select", {
      "aria-label": oneof, change: () => {
        for (const m of members) of[m.name] = m.name === choice.value ? this.convert.zero(m.type, m.type.kind === "proto") : null;
        this.build();
        this.write();
      },
    }, h("option", { value: "" }, "none"), ...members.map((m) => h("option", { value: m.name }, m.name)));
    choice.value = chosen?.name ?? "";
    return [row(oneof, "one of them", choice), ...(chosen ? this.field(chosen.name, chosen.type, chosen.proto, of) : [])];
  }

  /** control returns the input of a field that is no struct. */
  private control(name: string, type: TypeForm, proto: ProtoForm | undefined, of: Fields): HTMLElement {
    const now = of[name];
    const take = (v: unknown) => { of[name] = v; this.write(); };
    if (type.kind === "bool" && !proto?.optional) {
      const box = h("input", { type: "checkbox", "aria-label": name, change: () => take(box.checked) });
      box.checked = now === true;
      return box;
    }
    if (type.kind === "enum") {
      const choice = h("select", { "aria-label": name, change: () => take(choice.value || null) }, proto?.optional && h("option", { value: "" }, "unset"), ...type.values!.map((v) => h("option", { value: v }, v)));
      choice.value = String(now ?? "");
      return choice;
    }
    const plain = ["string", "bytes", "bytearray", "ref"].includes(type.kind);
    const input = h("input", {
      type: "text", "aria-label": name, autocomplete: "off", spellcheck: "false", placeholder: proto?.optional ? "unset" : hints[type.kind],
      input: () => take(input.value === "" && (proto?.optional || type.kind === "ref") ? null : plain ? input.value : asJSON(input.value)),
    });
    input.value = now === null || now === undefined ? "" : typeof now === "string" ? now : JSON.stringify(now);
    return input;
  }
}

const hints: Record<string, string> = { bytes: "base64", bytearray: "base64", ref: "17.3", slice: "[…]", map: '[{"Key": …, "Value": …}]' };

/** asJSON reads a number or a list. Any other input remains a text, which the check refuses. */
function asJSON(s: string): unknown {
  try {
    return JSON.parse(s);
  } catch {
    return s;
  }
}

function row(name: string, hint: string, control: HTMLElement): HTMLElement {
  return h("label", { class: "field" }, h("span", { title: hint }, name), control, h("small", {}, hint));
}
