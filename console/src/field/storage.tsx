/**
 * Shows how safe the data on this device is. Browsers may delete the storage of a page when the device is full, unless they have granted
 * persistent storage. If the page is not installed, Safari deletes its storage after seven days without a visit
 * (https://webkit.org/blog/10218/full-third-party-cookie-blocking-and-more/).
 */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Button } from "../ui/button.tsx";
import { numberText } from "../ui/text.ts";
import { type KeptStreets, MOST_STREETS_BYTES } from "./kept-streets.ts";

const megabytes = (bytes: number): string => `${numberText(Math.ceil(bytes / 1_000_000))} MB`;
const isInstalled = (): boolean => matchMedia("(display-mode: standalone)").matches;
/** True in Safari and all browsers on iPhones, which contain Safari. Excludes Chrome and Edge on other devices, which also name Safari. */
const isSafari = (): boolean => /^((?!chrome|chromium|android|edg\/).)*safari/i.test(navigator.userAgent);

/** The browser's offer to install the page. Undefined if the browser makes no offer. */
let offer: (() => Promise<unknown>) | undefined;
addEventListener("beforeinstallprompt", (event) => {
  // Without this call, some browsers show their own offer at once.
  event.preventDefault();
  offer = async () => {
    if ("prompt" in event && typeof event.prompt === "function") await event.prompt();
  };
});

/** `waiting` is the number of changes that wait to be sent. */
export function StorageState({ waiting, streets }: { waiting: number; streets: KeptStreets | undefined }) {
  const [isOffered, setOffered] = useState(offer !== undefined);
  const state = useQuery({
    queryKey: ["storage"],
    queryFn: async () => {
      const { storage } = navigator;
      // At the call of `persist`, the browser asks the user or decides by itself.
      const isKept = (await storage.persisted()) || (await storage.persist());
      return { isKept, bytes: (await storage.estimate()).usage };
    },
    networkMode: "always",
    gcTime: 0,
  }).data;
  if (state === undefined) return null;
  const { isKept, bytes = 0 } = state;
  return (
    <>
      <p>
        The data on this device takes {megabytes(bytes)}.{" "}
        {isKept ? "The browser keeps it." : "The browser may delete it when the device is full."}
      </p>
      {streets !== undefined && (
        <p>
          The street map of your territories takes {megabytes(streets.bytes)} of at most {megabytes(MOST_STREETS_BYTES)}
          .{streets.isCut && " Your territories are too large, so a part of their streets needs a connection."}
        </p>
      )}
      {waiting > 0 && isSafari() && !isInstalled() && (
        <p role="alert">
          Safari deletes what waits after seven days without a visit, unless the page is installed. To install it, press
          Share and then Add to Home Screen.
        </p>
      )}
      {isOffered && !isInstalled() && (
        <Button
          onClick={() => {
            setOffered(false);
            void offer?.();
          }}
        >
          Install on this device
        </Button>
      )}
    </>
  );
}
