// The admin listener: answers, actions, and the stream of live data.

/** Refused is an answer of the listener other than 200. Its message is the listener's line. */
export class Refused extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

/** get returns an answer of the API. */
export async function get<T>(path: string, query: Record<string, string | number | undefined> = {}): Promise<T> {
  const answer = await ask(path, query, "GET");
  return (await answer.json()) as T;
}

/** act sends a POST, and returns the listener's line. */
export async function act(path: string, query: Record<string, string | number | undefined> = {}): Promise<string> {
  return (await (await ask(path, query, "POST")).text()).trim();
}

async function ask(path: string, query: Record<string, string | number | undefined>, method: string): Promise<Response> {
  const answer = await fetch(`${path}?${params(query)}`, { method, cache: "no-store" });
  if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
  return answer;
}

function params(query: Record<string, string | number | undefined>): string {
  const all = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) if (v !== undefined) all.append(k, String(v));
  return all.toString();
}

/** Subscription is what a stream carries: topics, and parameters of their queries. */
export type Subscription = [string, string][];

/** Stream reads live data, and connects again after each end. */
export class Stream {
  private control: AbortController | undefined;
  private subscription = "";

  constructor(
    private readonly on: (topic: string, data: unknown) => void,
    private readonly state: (line: string, up: boolean) => void,
  ) {}

  /** open carries other topics from now on; again begins anew even with the same ones, from the first tick and line. */
  open(to: Subscription, again = false): void {
    const query = new URLSearchParams(to).toString();
    if (query === this.subscription && !again) return;
    this.subscription = query;
    this.control?.abort();
    this.control = new AbortController();
    void this.run(query, this.control.signal);
  }

  private async run(query: string, signal: AbortSignal): Promise<void> {
    for (let wait = 250; !signal.aborted; wait = Math.min(2 * wait, 2000)) {
      try {
        const answer = await fetch(`/api/stream?${query}`, { signal, cache: "no-store" });
        if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
        this.state("live", true);
        wait = 250;
        await this.read(answer.body!.getReader());
        throw new Error("the server has closed the stream");
      } catch (e) {
        if (signal.aborted) return;
        this.state(e instanceof Refused ? e.message : "the server does not answer: trying again", false);
      }
      await new Promise((done) => setTimeout(done, wait));
    }
  }

  /** read reads events: lines "event: NAME" and "data: JSON", and an empty line. */
  private async read(from: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for (let rest = ""; ; ) {
      const { done, value } = await from.read();
      if (done) return;
      rest += decoder.decode(value, { stream: true });
      const events = rest.split("\n\n");
      rest = events.pop()!;
      for (const e of events) {
        const match = /^event: (.*)\ndata: (.*)$/.exec(e);
        if (match) this.on(match[1]!, JSON.parse(match[2]!));
      }
    }
  }
}
