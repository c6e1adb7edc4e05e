import type { Subscription } from "./api.js";

/** Context is what a view knows of the page. */
export interface Context {
  /** room is the name of the chosen room. */
  readonly room: string;
  /** write reports whether actions are permitted. */
  readonly write: boolean;
  /** parameter returns a part of the address behind the view's name, such as the client in #clients/client=3. */
  parameter(name: string): string | undefined;
  /** open shows another view. */
  open(view: string, parameters?: Record<string, string | number>): void;
  /** note puts parameters into the address of the view that is shown, so that it can be sent to others. */
  note(parameters: Record<string, string | number>): void;
  /** subscribe asks for the view's topics again, after they have changed. */
  subscribe(): void;
  /** say shows a line for a while. */
  say(line: string, wrong?: boolean): void;
  /** act sends an action, and says its outcome. */
  act(path: string, query: Record<string, string | number | undefined>): Promise<void>;
}

/** View is one view of the page. It lives while it is shown. */
export interface View {
  /** topics returns the topics of the live data, and parameters of their queries. */
  topics(): Subscription;
  /** on takes an event of a topic. */
  on(topic: string, data: unknown): void;
  /** trouble takes the error of a topic. */
  trouble?(topic: string, line: string): void;
  /** key takes a key that the page does not use itself, and reports whether it did. */
  key?(key: string): boolean;
  /** end is called before another view is shown. */
  end?(): void;
}

/** Kind makes a view in an element. */
export interface Kind {
  name: string;
  title: string;
  make(root: HTMLElement, page: Context): View;
}
