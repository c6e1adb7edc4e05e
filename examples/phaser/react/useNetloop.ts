import { connect, type Client, type ConnectOptions, type Shape, type Status } from "@netloop/client";
import { useEffect, useState } from "react";

export function useNetloop<G extends Shape>(options: ConnectOptions<G>) {
  const [client, setClient] = useState<Client<G>>();
  const [status, setStatus] = useState<Status>();
  const [error, setError] = useState<Error>();
  useEffect(() => {
    const end = new AbortController();
    connect({ ...options, signal: end.signal }).then((joined) => {
      setClient(joined);
      joined.onStatus(setStatus); // renders when the phase changes, not each frame
      const frame = (now: number) => {
        if (end.signal.aborted) return;
        joined.step(now);
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    }, (failed) => {
      if (!end.signal.aborted) setError(failed); // StrictMode unmounts a component once, before the client has joined.
    });
    return () => end.abort();
  }, [options.room]);
  return { client, status, error };
}
