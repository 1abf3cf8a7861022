/** What a page shows while data is loading, when a request has failed, and when there is nothing to show. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Button } from "./button.tsx";
import style from "./states.module.css";

export function Loading({ what }: { what: string }) {
  return (
    <div className={style.state} role="status">
      <span className={style.spinner} aria-hidden="true" />
      <p>Loading {what} …</p>
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className={style.state}>
      <h2>{title}</h2>
      <div className={style.detail}>{children}</div>
    </div>
  );
}

export function Failure({ what, error, retry }: { what: string; error: Error; retry?: () => void }) {
  return (
    <div className={style.state} role="alert">
      <h2>The console could not load {what}</h2>
      <p className={style.detail}>{error.message}</p>
      {retry !== undefined && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/**
 * Shows the result of a query. While there is no result yet, shows that it is loading or has failed. An old result stays visible while it
 * is loaded again.
 */
export function Answer<T>(props: { query: UseQueryResult<T>; what: string; children: (data: T) => ReactNode }) {
  const { query, what, children } = props;
  if (query.data !== undefined) return children(query.data);
  if (query.error !== null) return <Failure what={what} error={query.error} retry={() => void query.refetch()} />;
  return <Loading what={what} />;
}
