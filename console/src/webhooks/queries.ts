/** Reads webhooks and their deliveries, and sends the requests that change them. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import type { EventType, TestRequest } from "canvassing-client/api";
import { useChange } from "../api/change.ts";
import { answer, api, RequestFailed } from "../api/client.ts";
import { notifyDone, notifyFailed } from "../ui/notices.tsx";
import { amount } from "../ui/text.ts";

const POLL_MS = 3_000;

export const useWebhooks = () => useQuery({ queryKey: ["webhooks"], queryFn: () => answer(api.GET("/api/webhooks")) });

export const useWebhook = (id: number) =>
  useQuery({
    queryKey: ["webhooks", id],
    queryFn: () => answer(api.GET("/api/webhooks/{id}", { params: { path: { id } } })),
  });

export const useEventTypes = () =>
  useQuery({
    queryKey: ["event-types"],
    queryFn: () => answer(api.GET("/api/webhooks/event-types")),
    staleTime: "static",
  });

export const deliveryStatuses = ["waiting", "delivered", "exhausted", "cancelled"] as const;
export type DeliveryStatus = (typeof deliveryStatuses)[number];

/** Reads the log of deliveries every few seconds, so that new deliveries appear while the log is open. */
export const useDeliveries = (id: number, status: DeliveryStatus | undefined) =>
  useInfiniteQuery({
    queryKey: ["webhooks", id, "deliveries", status],
    queryFn: ({ pageParam }) =>
      answer(
        api.GET("/api/webhooks/{id}/deliveries", {
          params: {
            path: { id },
            query: { limit: 50, ...(status && { status }), ...(pageParam !== "" && { cursor: pageParam }) },
          },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    refetchInterval: POLL_MS,
  });

export const useDelivery = (id: number, deliveryId: string) =>
  useQuery({
    queryKey: ["webhooks", id, "delivery", deliveryId],
    queryFn: () =>
      answer(api.GET("/api/webhooks/{id}/deliveries/{deliveryId}", { params: { path: { id, deliveryId } } })),
    refetchInterval: POLL_MS,
  });

const CONFLICT = 409;

/**
 * Runs an action on a webhook, loads the data on webhooks again, and shows a message. If the action has a dialog, the dialog shows the
 * error.
 */
const useAction = <Result, Input = void>(
  run: (input: Input) => Promise<Result>,
  said: (result: Result) => string,
  more: { readonly onDone?: () => void; readonly onError?: (error: Error) => void } = {},
) =>
  useChange({
    ...{ run, stale: ["webhooks"], onError: more.onError },
    onDone: (result) => {
      notifyDone(said(result));
      more.onDone?.();
    },
  });

/**
 * Shows the error of an action without a dialog as a message. A response 409 is not shown as an error, because it only means that the page
 * was out of date. For example, the service may already be sending the delivery.
 */
const asMessage = {
  onError: (error: Error): void => {
    if (error instanceof RequestFailed && error.status === CONFLICT) notifyDone(error.message);
    else notifyFailed(error);
  },
};

export type EventName = NonNullable<TestRequest["event"]>;

/** Returns true if the service's list of event types has the name, because the service then accepts it. */
export const isEventName = (name: string, types: readonly EventType[]): name is EventName =>
  types.some(({ event }) => event === name);

export const useTest = (id: number) =>
  useAction(
    (event: EventName) => answer(api.POST("/api/webhooks/{id}/test", { params: { path: { id } }, body: { event } })),
    () => "A sample is on its way. It will appear in the log.",
    asMessage,
  );

export const usePause = (id: number) =>
  useAction(
    (action: "pause" | "resume") =>
      action === "pause"
        ? answer(api.POST("/api/webhooks/{id}/pause", { params: { path: { id } } }))
        : answer(api.POST("/api/webhooks/{id}/resume", { params: { path: { id } } })),
    ({ status }) =>
      status === "paused" ? "Paused. Events are kept until you resume." : "Resumed. Kept events are sent now.",
    asMessage,
  );

export const useRedeliver = (id: number) =>
  useAction(
    (deliveryId: string) =>
      answer(
        api.POST("/api/webhooks/{id}/deliveries/{deliveryId}/redeliver", { params: { path: { id, deliveryId } } }),
      ),
    () => "The delivery is sent again.",
    asMessage,
  );

export interface Range {
  readonly from: string;
  readonly to: string;
  readonly deliveries: "undelivered" | "all";
}

export const useReplay = (id: number, onDone: () => void) =>
  useAction(
    ({ from, to, deliveries }: Range) =>
      answer(
        api.POST("/api/webhooks/{id}/replay", {
          params: { path: { id } },
          body: { from: new Date(from).toISOString(), to: new Date(to).toISOString(), deliveries },
        }),
      ),
    ({ count }) => `${amount(count, "delivery", "deliveries")} will be sent again.`,
    { onDone },
  );

export const useDeleteWebhook = (id: number, onDone: () => void) =>
  useAction(
    () => answer(api.DELETE("/api/webhooks/{id}", { params: { path: { id } } })),
    () => "The webhook is deleted.",
    { onDone },
  );

export const useDeleteRegistration = (id: number, registrationId: number, onDone: () => void) =>
  useAction(
    () =>
      answer(
        api.DELETE("/api/webhooks/{id}/registrations/{registrationId}", { params: { path: { id, registrationId } } }),
      ),
    () => "The registration is deleted, and what it waited to send is cancelled.",
    { onDone },
  );
