// The part of @types/react that the hook uses: the examples do not install React.

declare module "react" {
  export function useState<S>(): [S | undefined, (next: S | undefined) => void];
  export function useEffect(effect: () => void | (() => void), deps?: readonly unknown[]): void;
}
