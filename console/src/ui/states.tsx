/** What a page shows while data is loading, when a request has failed, and when there is nothing to show. */
import { Component, type ComponentType, lazy, type ReactNode, Suspense } from "react";
import { RequestFailed } from "../api/client.ts";
import { Button } from "./button.tsx";
import { notifyFailed } from "./notices.tsx";
import style from "./states.module.css";

/** Shows grey bars where the texts will be. A screen reader says what is loading. */
export function Loading({ what }: { what: string }) {
  return (
    <div className={`${style.loading} stack`} role="status">
      <span className="visually-hidden">Loading {what} …</span>
      <i />
      <i />
      <i />
      <i />
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={`${style.state} stack`}>
      <h2>{title}</h2>
      <div className="muted">{children}</div>
    </div>
  );
}

function Failure({ what, error, retry }: { what: string; error: Error; retry: () => unknown }) {
  return (
    <div className={`${style.state} stack`} role="alert">
      <h2>The console could not load {what}</h2>
      <p className="muted">{error.message}</p>
      <Button onClick={() => void retry()}>Try again</Button>
    </div>
  );
}

interface AnswerProps<T> {
  readonly query: {
    readonly data: T | undefined;
    readonly error: Error | null;
    readonly refetch: () => unknown;
  };
  readonly what: string;
  readonly children: (data: T) => ReactNode;
}

/**
 * Shows the result of a query. While there is no result yet, shows that it is loading or has failed. An old result stays visible while it
 * is loaded again, unless the record no longer exists.
 */
export function Answer<T>({ query: { data, error, refetch }, what, children }: AnswerProps<T>) {
  const isGone = error instanceof RequestFailed && error.status === 404;
  if (data !== undefined && !isGone) return children(data);
  if (error !== null) return <Failure what={what} error={error} retry={refetch} />;
  return <Loading what={what} />;
}

/** Returns a component whose code is loaded when it is first shown. Put it into a `Part`, which shows the loading and a failure. */
export function lazily<P>(load: () => Promise<ComponentType<P>>) {
  return lazy(async () => {
    const loaded = await load().catch((cause: unknown) => {
      throw new Error("Its code could not be loaded. Check your connection, and reload the page.", { cause });
    });
    return { default: loaded };
  });
}

interface PartProps {
  /** The name of the part. Without a name, the part shows nothing until it is loaded, and a message if it fails. */
  readonly what?: string | undefined;
  readonly children: ReactNode;
}

/** A part of a page that can be loaded later and can fail without the rest of the page. */
export function Part({ what, children }: PartProps) {
  return (
    <Boundary what={what}>
      <Suspense fallback={what !== undefined && <Loading what={what} />}>{children}</Suspense>
    </Boundary>
  );
}

class Boundary extends Component<PartProps, { readonly error?: Error }> {
  override state: { readonly error?: Error } = {};

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override componentDidCatch(error: Error): void {
    if (this.props.what === undefined) notifyFailed(error);
  }

  override render(): ReactNode {
    const { what, children } = this.props;
    const { error } = this.state;
    if (error === undefined) return children;
    // If code could not be loaded, React and browsers repeat the failure until the page is loaded again.
    return what !== undefined && <Failure what={what} error={error} retry={() => location.reload()} />;
  }
}
