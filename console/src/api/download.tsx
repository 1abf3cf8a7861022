/**
 * A button that saves a response of the API as a file. A plain link does not work, because the service accepts the session's cookie only
 * with the header in `SAME_SITE`, and a link cannot send a header.
 */
import type { ReactNode } from "react";
import { Button, type ButtonKind } from "../ui/button.tsx";
import { notifyFailed } from "../ui/notices.tsx";
import { RequestFailed, SAME_SITE, signIn, withSession } from "./client.ts";

interface DownloadProps {
  readonly path: string;
  readonly name: string;
  readonly kind?: ButtonKind;
  readonly children: ReactNode;
}

export function Download({ path, name, kind = "quiet", children }: DownloadProps) {
  return (
    <Button kind={kind} onClick={() => void download(path, name).catch(notifyFailed)}>
      {children}
    </Button>
  );
}

async function download(path: string, name: string): Promise<void> {
  const response = await withSession(new Request(path, { headers: SAME_SITE }));
  if (response.status === 401) return signIn();
  if (!response.ok) throw new RequestFailed(response.status, await response.json().catch(() => undefined));
  const url = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  URL.revokeObjectURL(url);
}
