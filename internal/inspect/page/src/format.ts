// Numbers for people.

/** time formats nanoseconds with three digits. */
export function time(ns: number): string {
  const s = Math.abs(ns);
  if (s < 1) return "0";
  if (s < 999.5) return `${digits(ns)} ns`;
  if (s < 999.5e3) return `${digits(ns / 1e3)} µs`;
  if (s < 999.5e6) return `${digits(ns / 1e6)} ms`;
  return age(ns);
}

/** ms formats nanoseconds as milliseconds, for columns. */
export function ms(ns: number): string {
  return (ns / 1e6).toFixed(Math.abs(ns) < 9.995e6 ? 2 : 1);
}

/** age formats nanoseconds of a second or more. */
export function age(ns: number): string {
  const s = ns / 1e9;
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** count formats a whole number with thin spaces between the thousands. */
export function count(n: number): string {
  return Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

/** bytes formats a number of bytes. */
export function bytes(n: number): string {
  if (n < 1000) return `${Math.round(n)} B`;
  if (n < 999.5e3) return `${digits(n / 1e3)} kB`;
  if (n < 999.5e6) return `${digits(n / 1e6)} MB`;
  return `${digits(n / 1e9)} GB`;
}

/** rate formats a number per second. */
export function rate(n: number): string {
  return n === 0 ? "0" : n < 1000 ? digits(n) : count(n);
}

/** percent formats a share. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;
}

/** digits formats a number with three digits. */
export function digits(n: number): string {
  const a = Math.abs(n);
  return n.toFixed(a < 9.995 ? 2 : a < 99.95 ? 1 : 0);
}
